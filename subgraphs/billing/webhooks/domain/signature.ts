import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { WebhookEventRecord } from './records.ts'

/**
 * After a rotation the earlier secret also signs for this long, so that a receiver can switch without losing a message.
 */
export const ROTATION_MS = 24 * 3_600_000

/** Creates the nonce from which an endpoint's secret is derived. */
export function newNonce(): string {
  return randomBytes(24).toString('hex')
}

/**
 * Returns an endpoint's secret: `whsec_` and 32 bytes in base64. The secret is derived from the stored nonce, so that a
 * copy of the store cannot sign anything.
 */
export function deriveSecret(pepper: Uint8Array, endpointId: string, nonce: string): string {
  return `whsec_${createHmac('sha256', pepper).update(`webhook secret\n${endpointId}\n${nonce}`).digest('base64')}`
}

/** Returns the body of a webhook, the same for each attempt and each endpoint. */
export function webhookBody({ type, at, data }: Pick<WebhookEventRecord, 'type' | 'at' | 'data'>): string {
  return `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at.toISOString())},"data":${data}}`
}

/** Returns the headers of Standard Webhooks, with a signature for each secret. */
export function signedHeaders(secrets: readonly string[], eventId: string, body: string, now: Date): Record<string, string> {
  return {
    'content-type': 'application/json',
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(eventId, now, body)).join(' '),
  }
}
