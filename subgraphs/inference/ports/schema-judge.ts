import type { ProtocolObject } from './engines.ts'

/** A fault of a value that does not meet a schema, in the terms of JSON Schema. */
export interface SchemaFault {
  /** The keyword of the schema: `required`, `type`, … */
  readonly keyword: string
  readonly params: Readonly<Record<string, unknown>>
  /** JSON pointer to the wrong value; empty: the whole value. */
  readonly instancePath: string
  readonly message?: string
  /** The schema that the wrong value does not meet. */
  readonly parentSchema?: { readonly description?: unknown }
}

/**
 * Checks values against callers' JSON Schemas (2020-12). The work is bounded in time and memory and never blocks the
 * event loop. Organizations take turns.
 */
export interface SchemaJudge {
  /**
   * Checks that a schema can be used.
   * @throws {SchemaFailure} it cannot; the message says why
   * @throws {TooBusy} too many checks of the organization wait
   * @throws the reason of the aborted signal
   */
  check(organizationId: string, schema: ProtocolObject, signal: AbortSignal): Promise<void>
  /**
   * @param json a JSON text
   * @returns the first faults; empty: it meets the schema
   * @throws as `check`
   */
  judge(organizationId: string, schema: ProtocolObject, json: string, signal: AbortSignal): Promise<readonly SchemaFault[]>
}

/** Why a schema cannot be used, in words for its author: it is invalid, uses unknown keywords, or takes too long. */
export class SchemaFailure extends Error {}
