import { checkOneOf, isAbsent, objectAt, textAt } from '../../subgraphs/common/check.ts'
import type { JsonObject } from '../http/route.ts'

const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max']
/** Far deeper than any schema. Keeps the walk from overflowing the stack. */
const MAX_DEPTH = 64

interface Output {
  /** `response_format` of the chat protocol. */
  readonly format: JsonObject | null
  readonly effort: string | null
}

/**
 * `output_format` is the older name of `output_config.format`.
 * @throws {KisError} `invalid_request`: a field has a wrong value
 */
export function readOutput(body: JsonObject): Output {
  const config = isAbsent(body.output_config) ? {} : objectAt(body.output_config, 'output_config')
  const path = isAbsent(config.format) ? 'output_format' : 'output_config.format'
  const format = config.format ?? body.output_format
  if (!isAbsent(config.effort)) checkOneOf(config.effort, 'output_config.effort', EFFORTS)
  // The greatest effort of the chat protocol is `xhigh`.
  const effort = config.effort === 'max' ? 'xhigh' : ((config.effort ?? null) as string | null)
  if (isAbsent(format)) return { format: null, effort }
  const { type, schema } = objectAt(format, path)
  checkOneOf(textAt(type, `${path}.type`), `${path}.type`, ['json_schema'])
  const jsonSchema = objectAt(schema, `${path}.schema`)
  return {
    format: { type: 'json_schema', json_schema: { name: 'output', schema: jsonSchema, ...(isClosed(jsonSchema) && { strict: true }) } },
    effort,
  }
}

/**
 * Whether every object of a schema requires all its properties and allows no others. The chat protocol demands this of
 * a strict schema, the Messages API does not. With any other schema, only the engine itself holds the answer to it.
 */
export function isClosed(schema: unknown, depth = 0): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(schema)) return schema.every((each) => isClosed(each, depth + 1))
  const { properties, required, additionalProperties } = schema as JsonObject
  if (typeof properties === 'object' && properties !== null) {
    const names = Array.isArray(required) ? required : []
    if (additionalProperties !== false || !Object.keys(properties).every((name) => names.includes(name))) return false
    if (!Object.values(properties).every((each) => isClosed(each, depth + 1))) return false
  }
  return Object.entries(schema).every(([keyword, inner]) => keyword === 'properties' || isClosed(inner, depth + 1))
}
