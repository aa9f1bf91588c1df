import type { ProtocolObject } from './engines.ts'

/** A fault as JSON Schema names it, of a value that does not meet a schema. */
export interface SchemaFault {
  /** Of the schema: `required`, `type`, … */
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  /** JSON pointer to the value at fault; empty: the whole value. */
  readonly instancePath: string
  readonly message?: string
  /** The schema that the value at fault does not meet. */
  readonly parentSchema?: { readonly description?: unknown }
}

/**
 * Judges by callers' JSON Schemas (2020-12). Work of theirs is bounded in time and memory and never done where others wait;
 * one organization's work does not keep another's from its turn.
 */
export interface SchemaJudge {
  /** @throws {SchemaFailure} it cannot be judged by. @throws {ServiceUnavailable} too much waits. @throws the signal's reason. */
  check(organizationId: string, schema: ProtocolObject, signal: AbortSignal): Promise<void>
  /** @param json a JSON text. @returns the first faults; none: it meets the schema. @throws as `check` does. */
  judge(organizationId: string, schema: ProtocolObject, json: string, signal: AbortSignal): Promise<readonly SchemaFault[]>
}

/** Why nothing can be judged by a schema, in words for whoever made it: it is none, has what is not known here, or takes too long. */
export class SchemaFailure extends Error {}
