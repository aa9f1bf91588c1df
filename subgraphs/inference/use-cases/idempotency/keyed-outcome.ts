import { promisify } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { gunzip, gzip } from 'node:zlib'
import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { sizeText } from '../../../common/sizes.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { Usage } from '../../domain/tokens/usage.ts'

/** The outcome of a call with an idempotency key, in the form that is replayed. */
export interface KeyedOutcome {
  /** The usage to charge, or null when the charge is already known. */
  readonly usage: Usage | null
  /** The result of the call without its cost; for a stream, its last event. Null when the call failed. */
  readonly value: object | null
  /** For a stream: the events before the last one. */
  readonly events: readonly object[]
  /** The error of the call, which comes after the events. */
  readonly failure: Failure | null
  /** The JSON of `value.response`, where that is too long for `value`. */
  readonly response?: PackedResponse
}

/** A text that is replayed as it is stored. */
export interface PackedResponse {
  readonly gzipped: Uint8Array
  readonly sizeBytes: number
}

interface Failure {
  readonly code: ErrorCode
  readonly message: string
  readonly param: string | null
  readonly vendorCode: string | null
}

/**
 * Largest packed outcome in bytes: about 500,000 tokens of text or 170 vectors of 1,536 numbers. MongoDB allows 16 MiB.
 */
const MAX_STORED_BYTES = 1024 * 1024

/**
 * Largest outcome of an unstreamed call that repeats read, check and write in one piece, 8 ms of the event loop for
 * each MiB. A longer response is replayed as bytes.
 */
const MAX_WHOLE_BYTES = 4 * 1024 * 1024

const zip = promisify(gzip)
const unzip = promisify(gunzip)
/** Text compresses well at any level, and vectors at none. */
const FASTEST = { level: 1 }

/** Packs an outcome as text for the store. If the result is too long, repeats get an error that says so. */
export async function packOutcome(outcome: KeyedOutcome): Promise<string> {
  const whole = serialize(outcome)
  const stored = outcome.events.length > 0 || whole.length <= MAX_WHOLE_BYTES ? whole : await packResponse(outcome)
  const packed = stored && (await zip(stored, FASTEST))
  if (packed && packed.length <= MAX_STORED_BYTES) return packed.toString('base64')
  return packOutcome({ usage: outcome.usage, value: null, events: [], failure: tooLong() })
}

/** Returns null unless the outcome is that of a chat, the only response that is replayed as bytes. */
async function packResponse(outcome: KeyedOutcome): Promise<Buffer | null> {
  const { value } = outcome
  if (!value || !('response' in value)) return null
  const json = Buffer.from(JSON.stringify(value.response))
  const response = { gzipped: await zip(json, FASTEST), sizeBytes: json.length }
  return serialize({ ...outcome, value: { ...value, response: {} }, response } satisfies KeyedOutcome)
}

export async function unpackOutcome(text: string): Promise<KeyedOutcome> {
  return deserialize(await unzip(Buffer.from(text, 'base64'))) as KeyedOutcome
}

/** Unpacks the response of a step. Its run needs the whole response, whatever its length. */
export async function unpackResponse({ gzipped }: PackedResponse): Promise<unknown> {
  return JSON.parse((await unzip(gzipped)).toString())
}

/** The failure that repeats get for a result above the storage limit. */
export function tooLong(): Failure {
  const message = `The call with this idempotency key has succeeded and was charged, but its response is longer than the ${sizeText(MAX_STORED_BYTES)} compressed, or, unless it is a chat, the ${sizeText(MAX_WHOLE_BYTES)}, that are stored.`
  return { code: 'idempotency_conflict', message, param: 'idempotencyKey', vendorCode: null }
}

/** The error of a repeat that cannot get the response as bytes. */
export function notWhole({ sizeBytes }: PackedResponse): KisError {
  return new KisError(
    'idempotency_conflict',
    `The response of the call with this idempotency key has ${sizeText(sizeBytes)}. Above ${sizeText(MAX_WHOLE_BYTES)} it is replayed as bytes only: by POST /v1/chat/completions, or in GraphQL with replayAsBytes.`,
    { param: 'idempotencyKey', shouldRetry: false },
  )
}

/** Returns the failure of a call that was charged `cost` nano-USD but has no whole result. */
export function lost(cost: bigint): Failure {
  const message = `The call with this idempotency key was charged ${formatUsd(cost)} USD, and its response was cut when the service stopped, or could not be stored. Send the request with another key.`
  return { code: 'idempotency_conflict', message, param: 'idempotencyKey', vendorCode: null }
}

/** The error of a call that is interrupted because the service stops. */
export class Interrupted extends KisError {
  constructor() {
    super(
      'service_unavailable',
      'The service stopped before the response was complete. Send the request again with the same idempotency key.',
      {
        retryAfterMs: 1_000,
      },
    )
  }
}

/** Returns the failure that a repeat gets for a call that failed and was charged `cost` nano-USD. */
export function toFailure(error: unknown, cost: bigint): Failure {
  if (!(error instanceof KisError) || error instanceof Interrupted) return lost(cost)
  const { code, message, param, vendorCode } = error
  return { code, message, param, vendorCode }
}

/** Returns the error of a recorded failure. It requests no retry, which would only replay the failure. */
export function toError({ code, message, param, vendorCode }: Failure): KisError {
  return new KisError(code, message, { param, vendorCode, shouldRetry: false })
}
