import type { ProtocolObject } from './engines.ts'

/** One reason why a value does not match a schema, in the terms of JSON Schema. */
export interface SchemaFault {
  /** The keyword of the schema: `required`, `type`, … */
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  /** JSON pointer to the wrong value. Empty: the whole value. */
  readonly instancePath: string
  readonly message?: string
  /** The schema that the wrong value does not match. */
  readonly parentSchema?: { readonly description?: unknown }
}

/**
 * Checks values against callers' JSON Schemas (2020-12). The work is limited in time and memory and never blocks the
 * event loop. Organizations are served round robin.
 */
export interface SchemaJudge {
  /**
   * Checks that a schema is usable.
   * @throws {SchemaFailure} the schema is not usable; the message says why
   * @throws {TooBusy} too many checks of the organization wait
   * @throws the reason of the aborted signal
   */
  check(organizationId: string, schema: ProtocolObject, signal: AbortSignal): Promise<void>
  /**
   * @param json a JSON text
   * @returns the first faults; empty: the value matches the schema
   * @throws as `check`
   */
  judge(organizationId: string, schema: ProtocolObject, json: string, signal: AbortSignal): Promise<readonly SchemaFault[]>
}

/** Why a schema cannot be used, in words for its author: it is invalid, uses unknown keywords, or takes too long. */
export class SchemaFailure extends Error {}
