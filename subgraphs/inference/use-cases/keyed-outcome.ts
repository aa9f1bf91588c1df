import { promisify } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { gunzip, gzip } from 'node:zlib'
import type { ErrorCode } from '../../../schema/errors.ts'
import { KisError } from '../../common/errors.ts'
import type { Usage } from '../domain/usage.ts'

/** What came of a call with an idempotency key, as it is replayed. */
export interface KeyedOutcome {
  /** What is charged; null when the charge is known already. */
  readonly usage: Usage | null
  /** What the call gave, without its cost; of a stream, its last event. Null when it failed. */
  readonly value: object | null
  /** Of a stream: the events before the last one. */
  readonly events: readonly object[]
  /** What the call failed with, after the events. */
  readonly failure: Failure | null
}

interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly param: string | null
  readonly vendorCode: string | null
}

/** A document of MongoDB has 16 MiB; this is some 500,000 tokens of text, or 170 vectors of 1,536 numbers. */
export const MAX_KEPT_BYTES = 1024 * 1024

const zip = promisify(gzip)
const unzip = promisify(gunzip)
/** Texts shrink well at any level, and vectors at none. */
const FASTEST = { level: 1 }

/** As text for the store. An answer that is too long to be kept is replayed as an error that says so. */
export async function packOutcome(outcome: KeyedOutcome): Promise<string> {
  const packed = await zip(serialize(outcome), FASTEST)
  if (packed.length <= MAX_KEPT_BYTES) return packed.toString('base64')
  return packOutcome({ usage: outcome.usage, value: null, events: [], failure: tooLong() })
}

export async function unpackOutcome(text: string): Promise<KeyedOutcome> {
  return deserialize(await unzip(Buffer.from(text, 'base64'))) as KeyedOutcome
}

export function tooLong(): Failure {
  const message = `The call with this idempotency key has succeeded and was charged, but its answer is longer than the ${MAX_KEPT_BYTES} bytes that are kept.`
  return { code: 'idempotency_conflict', message, param: 'idempotencyKey', vendorCode: null }
}

/** Of a call whose process stopped or was killed. */
export function interrupted(): Failure {
  const message =
    'The service stopped before the call with this idempotency key had its answer; what it had used is charged. Send the request with another key.'
  return { code: 'service_unavailable', message, param: null, vendorCode: null }
}

export function failureOf(error: unknown): Failure {
  if (!(error instanceof KisError)) return interrupted()
  const { code, message, param, vendorCode } = error
  return { code, message, param, vendorCode }
}

/** A repeat would only replay it again. */
export function errorOf({ code, message, param, vendorCode }: Failure): KisError {
  return new KisError(code, message, { param, vendorCode, shouldRetry: false })
}
