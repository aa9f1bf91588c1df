import { refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Most characters of one run's messages as JSON: at most 12 MB of Arabic text; the store allows 16 MB a document. */
const MAX_CHARACTERS = 4_000_000

/**
 * Returns the messages as runs and threads keep them. A sentence replaces each inline image, because the bytes of
 * images do not fit the store.
 * @throws {KisError} `string_above_max_length`: without images, the messages are still too long.
 */
export function toStoredForm(messages: readonly ProtocolObject[]): readonly ProtocolObject[] {
  const stored = messages.map((message) =>
    Array.isArray(message.content) ? { ...message, content: message.content.map(storedPart) } : message,
  )
  if (JSON.stringify(stored).length > MAX_CHARACTERS)
    refuse(
      'string_above_max_length',
      'input.messages',
      `The messages of a run have at most ${MAX_CHARACTERS} characters in all, images left out.`,
    )
  return stored
}

function storedPart(part: { readonly type?: unknown; readonly image_url?: { readonly url?: unknown } }): unknown {
  const isBytes = part.type === 'image_url' && String(part.image_url?.url).startsWith('data:')
  return isBytes ? { type: 'text', text: '[An image was here.]' } : part
}
