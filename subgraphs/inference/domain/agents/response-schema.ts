import { checkJson, objectAt, refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Longest schema as JSON. Compile time grows with the length. */
const MAX_SCHEMA_CHARACTERS = 32_768
const FENCE = '```'

/** A caller's schema, with its path in the request. */
export interface PlacedSchema {
  readonly schema: ProtocolObject
  readonly param: string
}

/**
 * Checks the size of a caller's schema. `SchemaJudge` checks its validity.
 * @throws {KisError} the schema is too large, or not an object
 */
export function schemaAt(value: unknown, param: string): ProtocolObject {
  const schema = objectAt(value, param)
  checkJson(schema, param)
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARACTERS)
    refuse('string_above_max_length', param, `A schema has at most ${MAX_SCHEMA_CHARACTERS} characters as JSON.`)
  return schema
}

/**
 * Returns the contents of a Markdown code fence, in which many models write JSON, or the text itself. Takes one pass,
 * because a model's text has any length.
 */
export function withoutFence(text: string): string {
  const trimmed = text.trim()
  if (trimmed.length < 2 * FENCE.length || !trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE)) return text
  const firstLineEnd = trimmed.indexOf('\n')
  const lastLineStart = trimmed.lastIndexOf('\n') + 1
  const language = trimmed.slice(FENCE.length, Math.max(FENCE.length, firstLineEnd)).trim()
  const isFenced = firstLineEnd > 0 && ['', 'json'].includes(language) && trimmed.slice(lastLineStart).trim() === FENCE
  return isFenced ? trimmed.slice(firstLineEnd + 1, lastLineStart) : text
}
