import { refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { errorOfFault } from '../../../common/link/schema-fault.ts'
import { type PlacedSchema, withoutFence } from '../../domain/agents/response-schema.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { SchemaFailure } from '../../ports/schema-judge.ts'
import type { CallContext, Ports } from '../deps.ts'

/** Answers that do not match the schema before a run gives up; each is told what was wrong. */
export const MAX_SCHEMA_TRIES = 3
/** Of an answer: more than any model writes in one. */
const MAX_JUDGED_CHARACTERS = 1_048_576
/** Of a failed answer, what the error repeats; and of each of its faults, which may name what the answer has. */
const MAX_TOLD_CHARACTERS = 2_000
const MAX_FAULT_CHARACTERS = 200

export type Judgement = { readonly value: unknown } | { readonly faults: readonly string[] }

/** @throws {KisError} `invalid_request`: the first of the schemas that nothing can be judged by. */
export async function checkSchemas(
  { schemas }: Ports,
  { organizationId }: Principal,
  placed: readonly PlacedSchema[],
  signal: AbortSignal,
): Promise<void> {
  for (const { schema, param } of placed) {
    await schemas.check(organizationId, schema, signal).catch((error) => {
      if (error instanceof SchemaFailure) refuse('invalid_request', param, `Nothing can be judged by this schema. ${error.message}`)
      throw error
    })
  }
}

/**
 * Judges a text by a schema; it may stand in a Markdown fence.
 * @throws {KisError} `output_schema_failed`: it cannot be judged.
 */
export async function judgeAnswer(deps: Ports, context: CallContext, schema: ProtocolObject, text: string): Promise<Judgement> {
  if (text.length > MAX_JUDGED_CHARACTERS) return { faults: [`it has more than ${MAX_JUDGED_CHARACTERS} characters`] }
  const json = withoutFence(text)
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (error) {
    return { faults: [`it is not JSON: ${(error as Error).message}`] }
  }
  const faults = await findFaults(deps, context, schema, json)
  if (faults.length === 0) return { value }
  return { faults: faults.map(({ instancePath, message }) => `${instancePath || 'the value'} ${message}`.slice(0, MAX_FAULT_CHARACTERS)) }
}

/** The output, where it meets the schema. @throws {KisError} `output_schema_failed` */
export async function meeting(deps: Ports, context: CallContext, schema: ProtocolObject, output: unknown): Promise<unknown> {
  const text = JSON.stringify(output)
  const judged = await judgeAnswer(deps, context, schema, text)
  if ('faults' in judged) throw schemaFailed(judged.faults, text)
  return output
}

async function findFaults({ schemas }: Ports, { caller, signal }: CallContext, schema: ProtocolObject, json: string) {
  try {
    return await schemas.judge(caller.organizationId, schema, json, signal)
  } catch (error) {
    if (!(error instanceof SchemaFailure)) throw error
    throw new KisError('output_schema_failed', `The answer could not be judged by the schema. ${error.message}`, { cause: error })
  }
}

/** @throws {KisError} with the path below `param` where the value does not meet the schema. */
export async function checkBySchema(
  { schemas }: Ports,
  { organizationId }: Principal,
  schema: ProtocolObject,
  json: string,
  { param, whole }: { readonly param: string; readonly whole: string },
  signal: AbortSignal,
): Promise<void> {
  const faults = await schemas.judge(organizationId, schema, json, signal).catch((error) => {
    if (error instanceof SchemaFailure) refuse('invalid_request', param, `${whole} could not be judged by their schema. ${error.message}`)
    throw error
  })
  if (faults[0]) throw errorOfFault(faults[0], whole, param)
}

/** How a model is told of the schema: by a field of the request where it knows one, else by an order. */
export function schemaOrder(
  { supports }: Model,
  schema: ProtocolObject,
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
