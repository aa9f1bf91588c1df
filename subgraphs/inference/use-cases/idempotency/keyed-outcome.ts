import { promisify } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { gunzip, gzip } from 'node:zlib'
import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { Usage } from '../../domain/tokens/usage.ts'

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

/** Of a call that was charged `cost` nano-USD and has no whole answer to give. */
export function lost(cost: bigint): Failure {
  const message = `The call with this idempotency key was charged ${formatUsd(cost)} USD, and its answer was cut when the service stopped, or could not be kept. Send the request with another key.`
  return { code: 'idempotency_conflict', message, param: 'idempotencyKey', vendorCode: null }
}

/** The service stops. */
export class Interrupted extends KisError {
  constructor() {
    super('service_unavailable', 'The service stopped before the answer was whole. Send the request again with the same idempotency key.')
  }
}

/** What a repeat is told of a call that has failed and was charged. */
export function toFailure(error: unknown, cost: bigint): Failure {
  if (!(error instanceof KisError) || error instanceof Interrupted) return lost(cost)
  const { code, message, param, vendorCode } = error
  return { code, message, param, vendorCode }
}

/** A repeat would only replay it again. */
export function toError({ code, message, param, vendorCode }: Failure): KisError {
  return new KisError(code, message, { param, vendorCode, shouldRetry: false })
}
