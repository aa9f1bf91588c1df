import { checkDepth, objectAt, refuse } from '../../../common/check.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Of the schema as JSON; compiling takes time that grows with it. */
const MAX_SCHEMA_CHARACTERS = 32_768
const FENCE = '```'

/** A schema of a caller, and where it stands in what he sent. */
export interface PlacedSchema {
  readonly schema: ProtocolObject
  readonly param: string
}

/** The caller's schema, whose size is bounded; whether anything can be judged by it, `SchemaJudge` says. @throws {KisError} */
export function schemaAt(value: unknown, param: string): ProtocolObject {
  const schema = objectAt(value, param)
  checkDepth(schema, param)
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARACTERS)
    refuse('string_above_max_length', param, `A schema has at most ${MAX_SCHEMA_CHARACTERS} characters as JSON.`)
  return schema
}

/** What stands in a Markdown fence, as many models write their JSON, or the text itself. In one pass: a model may write anything, and any amount of it. */
export function withoutFence(text: string): string {
  const trimmed = text.trim()
  if (trimmed.length < 2 * FENCE.length || !trimmed.startsWith(FENCE) || !trimmed.endsWith(FENCE)) return text
  const firstLineEnd = trimmed.indexOf('\n')
  const lastLineStart = trimmed.lastIndexOf('\n') + 1
  const language = trimmed.slice(FENCE.length, Math.max(FENCE.length, firstLineEnd)).trim()
  const isFenced = firstLineEnd > 0 && ['', 'json'].includes(language) && trimmed.slice(lastLineStart).trim() === FENCE
  return isFenced ? trimmed.slice(firstLineEnd + 1, lastLineStart) : text
}
