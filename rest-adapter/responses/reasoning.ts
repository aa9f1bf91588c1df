import { isAbsent, listAt, objectAt, textAt } from '../../subgraphs/common/check.ts'
import { parseBoundedJson } from '../../subgraphs/common/server/bounded-json.ts'
import type { JsonObject } from '../http/route.ts'

/** What an engine wants back beside the text of its reasoning. */
export interface ReasoningState {
  /** Signed pieces, as `reasoning_details` of the chat protocol has them. */
  readonly details: readonly unknown[]
  /** `extra_content` of calls of tools, by the call's id. */
  readonly calls: Readonly<Record<string, unknown>>
}

/** Tells what was made here from what another service has encrypted. */
const PREFIX = 'kis1.'
const MAX_PARTS = 2_048

/**
 * What goes into `encrypted_content`, or null when an engine wants nothing back. It holds no secret: vendors sign or encrypt what it holds, and the
 * chat protocol shows it as it is.
 */
export function encryptedContentOf({ details, calls }: ReasoningState): string | null {
  if (details.length === 0 && Object.keys(calls).length === 0) return null
  return PREFIX + Buffer.from(JSON.stringify({ details, calls })).toString('base64url')
}

/** The text and the state of a reasoning item. State that was not made here helps no engine here, and is left out. @throws {KisError} */
export function reasoningOf(item: JsonObject, path: string): ReasoningState & { readonly text: string } {
  const { encrypted_content: encrypted } = item
  if (!isAbsent(encrypted)) textAt(encrypted, `${path}.encrypted_content`)
  // One of the two has it, as the caller had asked for it.
  const text = textOf(item.content, `${path}.content`) || textOf(item.summary, `${path}.summary`)
  return { text, ...stateOf(encrypted as string | null | undefined) }
}

function textOf(parts: unknown, path: string): string {
  if (isAbsent(parts)) return ''
  const texts = listAt(parts, path, 0, MAX_PARTS).map((part, index) =>
    textAt(objectAt(part, `${path}[${index}]`).text, `${path}[${index}].text`),
  )
  return texts.join('')
}

function stateOf(encrypted: string | null | undefined): ReasoningState {
  if (!encrypted?.startsWith(PREFIX)) return { details: [], calls: {} }
  try {
    const text = Buffer.from(encrypted.slice(PREFIX.length), 'base64url').toString()
    const { details, calls } = parseBoundedJson(text) as Partial<ReasoningState>
    return { details: Array.isArray(details) ? details : [], calls: typeof calls === 'object' && calls !== null ? calls : {} }
  } catch {
    return { details: [], calls: {} }
  }
}
