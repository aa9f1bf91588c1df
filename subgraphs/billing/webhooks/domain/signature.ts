import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { WebhookEndpoint, WebhookEventRecord } from './records.ts'

/** For so long after a rotation the former secret signs beside the new one, so that a receiver can change over without losing a message. */
export const ROTATION_MS = 24 * 3_600_000

export function newNonce(): string {
  return randomBytes(24).toString('hex')
}

/** An endpoint's secret, `whsec_` and 32 bytes in base64: made anew from the nonce that is kept, so that a copy of the store signs nothing. */
export function secretOf(pepper: Uint8Array, endpointId: string, nonce: string): string {
  return `whsec_${createHmac('sha256', pepper).update(`webhook secret\n${endpointId}\n${nonce}`).digest('base64')}`
}

/** What is sent: the same for each attempt and each endpoint. */
export function bodyOf({ type, at, data }: Pick<WebhookEventRecord, 'type' | 'at' | 'data'>): string {
  return `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at.toISOString())},"data":${data}}`
}

/** The headers of Standard Webhooks. */
export function signedHeaders(
  pepper: Uint8Array,
  endpoint: WebhookEndpoint,
  eventId: string,
  body: string,
  now: Date,
): Record<string, string> {
  const { _id, nonce, previousNonce, previousUntil } = endpoint
  const nonces = previousNonce !== null && previousUntil !== null && previousUntil > now ? [nonce, previousNonce] : [nonce]
  return {
    'content-type': 'application/json',
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': nonces.map((each) => new Webhook(secretOf(pepper, _id, each)).sign(eventId, now, body)).join(' '),
  }
}
