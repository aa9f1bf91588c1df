import { refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { errorOfFault } from '../../../common/link/schema-fault.ts'
import { type PlacedSchema, withoutFence } from '../../domain/agents/response-schema.ts'
import type { Model } from '../../domain/catalog.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { SchemaFailure } from '../../ports/schema-judge.ts'
import type { CallContext, Ports } from '../deps.ts'

/** Most replies of a model before the run fails. After each mismatch, the model gets the list of faults. */
export const MAX_SCHEMA_TRIES = 3
/** Longest reply that is judged, in characters; no model writes as much at once. */
const MAX_JUDGED_CHARACTERS = 1_048_576
/** Most characters that an error quotes of a failed reply, and of each fault, which may quote the reply. */
const MAX_QUOTED_CHARACTERS = 2_000
const MAX_FAULT_CHARACTERS = 200

type Judgement = { readonly value: unknown } | { readonly faults: readonly string[] }

/** @throws {KisError} `invalid_request`: a schema cannot be used; the first such schema is named. */
export async function checkSchemas(
  { schemas }: Ports,
  { organizationId }: Principal,
  placed: readonly PlacedSchema[],
  signal: AbortSignal,
): Promise<void> {
  for (const { schema, param } of placed) {
    await schemas.check(organizationId, schema, signal).catch((error) => {
      if (error instanceof SchemaFailure) refuse('invalid_request', param, `Nothing can be validated against this schema. ${error.message}`)
      throw error
    })
  }
}

/**
 * Judges a text by a schema. The text is JSON, possibly in a Markdown fence.
 * @throws {KisError} `output_schema_failed`: the schema judge failed.
 */
export async function judgeReply(deps: Ports, context: CallContext, schema: ProtocolObject, text: string): Promise<Judgement> {
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

/**
 * Returns the output if it matches the schema.
 * @throws {KisError} `output_schema_failed`: the output does not match, or cannot be judged.
 */
export async function meeting(deps: Ports, context: CallContext, schema: ProtocolObject, output: unknown): Promise<unknown> {
  const text = JSON.stringify(output)
  const judged = await judgeReply(deps, context, schema, text)
  if ('faults' in judged) throw schemaFailed(judged.faults, text)
  return output
}

async function findFaults({ schemas }: Ports, { caller, signal }: CallContext, schema: ProtocolObject, json: string) {
  try {
    return await schemas.judge(caller.organizationId, schema, json, signal)
  } catch (error) {
    if (!(error instanceof SchemaFailure)) throw error
    throw new KisError('output_schema_failed', `The answer could not be validated against the schema. ${error.message}`, { cause: error })
  }
}

/**
 * Checks a value, given as JSON, by a schema. `whole` names the value in messages.
 * @throws {KisError} with the path below `param`: the value does not match, or cannot be judged.
 */
export async function checkBySchema(
  { schemas }: Ports,
  { organizationId }: Principal,
  schema: ProtocolObject,
  json: string,
  { param, whole }: { readonly param: string; readonly whole: string },
  signal: AbortSignal,
): Promise<void> {
  const faults = await schemas.judge(organizationId, schema, json, signal).catch((error) => {
    if (error instanceof SchemaFailure)
      refuse('invalid_request', param, `${whole} could not be validated against their schema. ${error.message}`)
    throw error
  })
  if (faults[0]) throw errorOfFault(faults[0], whole, param)
}

/**
 * Returns how a request states the schema to the model: a request field if the model supports one, else an instruction.
 */
export function schemaOrder(
  { supports }: Model,
  schema: ProtocolObject,
): { readonly fields: ProtocolObject; readonly order: string | null } {
  if (supports.has('response_schema'))
    return { fields: { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }, order: null }
  return { fields: {}, order: `Answer with JSON alone that matches this JSON Schema: ${JSON.stringify(schema)}` }
}

/** Returns the message that lists for a model why its reply does not match. */
export function schemaFaults(faults: readonly string[]): ProtocolObject {
  return { role: 'user', content: `Your answer does not match the schema: ${faults.join('; ')}. Answer again with the JSON alone.` }
}

/** Returns the error for a reply that does not match the schema. */
export function schemaFailed(faults: readonly string[], text: string): KisError {
  const quoted = text.slice(0, MAX_QUOTED_CHARACTERS)
  return new KisError('output_schema_failed', `The answer did not match the schema: ${faults.join('; ')}. It was: ${quoted}`)
}
