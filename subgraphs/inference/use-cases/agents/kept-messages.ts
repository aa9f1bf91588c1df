import { refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Of one run's messages as JSON: at most 12 MB of Arabic text, below the 16 MB of a document of the store. */
const MAX_CHARACTERS = 4_000_000

/**
 * Messages as runs and threads keep them: the bytes of images would outgrow every store, and a sentence stands for
 * them.
 * @throws {KisError} still too much.
 */
export function toKeptForm(messages: readonly ProtocolObject[]): readonly ProtocolObject[] {
  const kept = messages.map((message) =>
    Array.isArray(message.content) ? { ...message, content: message.content.map(keptPart) } : message,
  )
  if (JSON.stringify(kept).length > MAX_CHARACTERS)
    refuse(
      'string_above_max_length',
      'input.messages',
      `The messages of a run have at most ${MAX_CHARACTERS} characters in all, images left out.`,
    )
  return kept
}

function keptPart(part: { readonly type?: unknown; readonly image_url?: { readonly url?: unknown } }): unknown {
  const isBytes = part.type === 'image_url' && String(part.image_url?.url).startsWith('data:')
  return isBytes ? { type: 'text', text: '[An image was here.]' } : part
}
