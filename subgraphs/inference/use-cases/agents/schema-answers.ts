import { KisError } from '../../../common/errors.ts'
import type { ResponseSchema } from '../../domain/agents/response-schema.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ProtocolObject } from '../../ports/engines.ts'

/** Answers that do not match the schema before a run gives up; each is told what was wrong. */
export const MAX_SCHEMA_TRIES = 3
/** Of a failed answer, what the error repeats. */
const MAX_TOLD_CHARACTERS = 2_000

/** How a model is told of the schema: by a field of the request where it knows one, else by an order. */
export function schemaOrder(
  { supports }: Model,
  { schema }: ResponseSchema,
): { readonly fields: ProtocolObject; readonly order: string | null } {
  if (supports.has('response_schema'))
    return { fields: { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }, order: null }
  return { fields: {}, order: `Answer with JSON alone that matches this JSON Schema: ${JSON.stringify(schema)}` }
}

/** What a model is told whose answer does not match. */
export function schemaFaults(faults: readonly string[]): ProtocolObject {
  return { role: 'user', content: `Your answer does not match the schema: ${faults.join('; ')}. Answer again with the JSON alone.` }
}

export function schemaFailed(faults: readonly string[], text: string): KisError {
  const told = text.slice(0, MAX_TOLD_CHARACTERS)
  return new KisError('output_schema_failed', `The answer did not match the schema: ${faults.join('; ')}. It was: ${told}`)
}
