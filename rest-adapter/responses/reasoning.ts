import { isAbsent, listAt, objectAt, textAt } from '../../subgraphs/common/check.ts'
import { parseLimitedJson } from '../../subgraphs/common/server/bodies/limited-json.ts'
import type { JsonObject } from '../http/route.ts'

/** What an engine wants back besides the text of its reasoning. */
export interface ReasoningState {
  /** Signed pieces, as in `reasoning_details` of the chat protocol. */
  readonly details: readonly unknown[]
  /** `extra_content` of calls of tools, by the id of the call. */
  readonly calls: Readonly<Record<string, unknown>>
}

/** Marks what was made here, as opposed to what another service has encrypted. */
const PREFIX = 'kis1.'
const MAX_PARTS = 2_048

/**
 * Gives the `encrypted_content`, or null when the engine wants nothing back. It holds no secret: the vendor has signed
 * or encrypted its parts, and the chat protocol shows them as they are.
 */
export function encodeReasoning({ details, calls }: ReasoningState): string | null {
  if (details.length === 0 && Object.keys(calls).length === 0) return null
  return PREFIX + Buffer.from(JSON.stringify({ details, calls })).toString('base64url')
}

/**
 * Gives the text and the state of a reasoning item. State of another service is left out: it helps no engine here.
 * @throws {KisError} `invalid_request`: the item is malformed
 */
export function readReasoning(item: JsonObject, path: string): ReasoningState & { readonly text: string } {
  const { encrypted_content: encrypted } = item
  if (!isAbsent(encrypted)) textAt(encrypted, `${path}.encrypted_content`)
  // One of the two holds the text, depending on what the caller asked for.
  const text = readText(item.content, `${path}.content`) || readText(item.summary, `${path}.summary`)
  return { text, ...decodeState(encrypted as string | null | undefined) }
}

function readText(parts: unknown, path: string): string {
  if (isAbsent(parts)) return ''
  const texts = listAt(parts, path, 0, MAX_PARTS).map((part, index) =>
    textAt(objectAt(part, `${path}[${index}]`).text, `${path}[${index}].text`),
  )
  return texts.join('')
}

function decodeState(encrypted: string | null | undefined): ReasoningState {
  if (!encrypted?.startsWith(PREFIX)) return { details: [], calls: {} }
  try {
    const text = Buffer.from(encrypted.slice(PREFIX.length), 'base64url').toString()
    const { details, calls } = parseLimitedJson(text) as Partial<ReasoningState>
    return { details: Array.isArray(details) ? details : [], calls: typeof calls === 'object' && calls !== null ? calls : {} }
  } catch {
    return { details: [], calls: {} }
  }
}
