import { EgressError } from '../../../common/egress/egress.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { DeliveryAttempt, WebhookEndpoint, WebhookEventRecord } from '../domain/records.ts'
import { signedHeaders, webhookBody } from '../domain/signature.ts'
import { maySendTo } from './endpoint-input.ts'
import { secretsOf } from './endpoint-secrets.ts'

/** Time limit of a response. A receiver that needs longer should accept the event, respond, and work afterwards. */
const RESPONSE_MS = 10_000
/** Bytes of a response stored for the log. */
const MAX_RESPONSE_BYTES = 500
/** Control characters that no text has. */
const NO_TEXT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffd]/

/** The result of one request to an endpoint. */
export interface Outcome {
  readonly attempt: DeliveryAttempt
  /** True: the endpoint has responded with 410, so it wants no more events. */
  readonly isGone: boolean
  /** The wait that the endpoint requests, in milliseconds. */
  readonly retryAfterMs: number | null
}

/** The organization's current policy forbids sending events to this endpoint. */
export class EndpointForbidden extends Error {}

/**
 * Sends one request. Redirects are not followed, because the body may only go to the registered URL; they count as
 * failures.
 * @throws {EndpointForbidden} nothing was sent
 * @throws the reason of the aborted signal
 */
export async function deliver(
  deps: Pick<BillingDeps, 'egress' | 'clock' | 'collections' | 'pepper' | 'sealed'>,
  endpoint: WebhookEndpoint,
  event: WebhookEventRecord,
  signal: AbortSignal,
): Promise<Outcome> {
  const { egress, clock } = deps
  const at = clock.now()
  const startedMs = performance.now()
  const body = webhookBody(event)
  const outcome = (statusCode: number | null, error: string | null, responseStart: string | null) => ({
    at,
    statusCode,
    durationMs: Math.round(performance.now() - startedMs),
    error,
    responseStart,
  })
  try {
    const {
      status,
      headers,
      body: responseBody,
    } = await egress.open(
      {
        url: endpoint.url,
        organizationId: endpoint.organizationId,
        method: 'POST',
        headers: signedHeaders(secretsOf(deps, endpoint, at), event._id, body, at),
        body,
        totalMs: RESPONSE_MS,
        maxRedirects: 0,
        authorize: async (url) => {
          if (!(await maySendTo(deps, endpoint.organizationId, url))) throw new EndpointForbidden()
        },
      },
      signal,
    )
    const responseStart = await readStart(responseBody)
    const isAccepted = status >= 200 && status < 300
    const attempt = outcome(status, isAccepted ? null : `The endpoint returned status ${status}.`, responseStart)
    return { attempt, isGone: status === 410, retryAfterMs: readRetryAfter(status, headers['retry-after']) }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof EgressError)) throw error
    const text = error.reason === 'unreachable' ? 'The endpoint did not respond within 10 s, or could not be reached.' : error.message
    return { attempt: outcome(null, text, null), isGone: false, retryAfterMs: null }
  }
}

/** Returns the start of the body. Only the status counts, so a failure while reading the body changes nothing. */
async function readStart(responseBody: AsyncIterable<Uint8Array>): Promise<string | null> {
  const pieces: Uint8Array[] = []
  try {
    for await (const piece of responseBody) {
      pieces.push(piece)
      if (pieces.reduce((sum, { length }) => sum + length, 0) >= MAX_RESPONSE_BYTES) break
    }
  } catch {
    // The bytes that have arrived are enough.
  }
  // Drops a character that the cut has split.
  const text = new TextDecoder().decode(Buffer.concat(pieces).subarray(0, MAX_RESPONSE_BYTES)).replace(/\ufffd$/, '')
  return text === '' || NO_TEXT.test(text) ? null : text
}

/** Reads `retry-after`, which counts only from an overloaded or absent receiver. */
function readRetryAfter(status: number, retryAfter: string | undefined): number | null {
  return (status === 429 || status === 503) && /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1_000 : null
}
