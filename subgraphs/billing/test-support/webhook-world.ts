import type { EgressRequest, EgressResponse } from '../../common/egress/egress.ts'
import { EgressError } from '../../common/egress/egress.ts'
import type { WebhookEvent } from '../../common/events/webhook-events.ts'
import type { DocumentStore } from '../../common/ports/document-store.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import { acceptEvents } from '../webhooks/use-cases/accept-events.ts'
import { createEndpoint } from '../webhooks/use-cases/endpoints.ts'
import { WebhookSender } from '../webhooks/use-cases/webhook-sender.ts'
import { createPrincipal, type ManualClock, openBilling } from './world.ts'

interface Sent {
  readonly url: string
  readonly id: string
  readonly type: string
  readonly document: string
  readonly number: number
}

/** Receivers without a network: they record what they get, and answer as told. */
export class FakeReceivers {
  readonly sent: Sent[] = []
  underWay = 0
  mostUnderWay = 0
  /** A status; null: no answer. */
  answering: (message: Sent) => number | null | Promise<number | null> = () => 204
  headers: Readonly<Record<string, string>> = {}

  allows(): boolean {
    return true
  }

  async mayReach(): Promise<boolean> {
    return true
  }

  isNamed(): boolean {
    return true
  }

  async open({ url, headers, body, authorize }: EgressRequest): Promise<EgressResponse<AsyncIterable<Uint8Array>>> {
    await authorize?.(url)
    const { type, data } = JSON.parse(String(body))
    const message = { url, id: headers!['webhook-id']!, type, document: data.document_id, number: data.number }
    this.underWay++
    this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay)
    try {
      const status = await this.answering(message)
      this.sent.push(message)
      if (status === null) throw new EgressError('unreachable')
      return { status, headers: this.headers, url, body: streamText('as told') }
    } finally {
      this.underWay--
    }
  }
}

async function* streamText(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text)
}

export interface WebhookWorld {
  readonly deps: BillingDeps
  readonly sender: WebhookSender
}

/** One process of billing that sends to the receivers. */
export function openSender(store: DocumentStore, clock: ManualClock, egress: BillingDeps['egress']): WebhookWorld {
  const deps: BillingDeps = { ...openBilling(store, clock), egress }
  return { deps, sender: new WebhookSender(deps) }
}

/** Creates an endpoint for documents, in an organization of its own. */
export async function newEndpoint({ deps }: WebhookWorld, url: string, organizationId: string): Promise<string> {
  const { webhookEndpoint } = await createEndpoint(deps, createPrincipal(organizationId, ['admin']), {
    url,
    eventTypes: ['document.updated'],
  })
  return webhookEndpoint._id
}

/** Makes changes of documents from a sequence number on, as knowledge delivers them. */
function changes(documents: readonly string[], first: number, at: Date): readonly WebhookEvent[] {
  return documents.map((subject, i) => ({
    type: 'document.updated',
    subject,
    sequence: first + i,
    at,
    data: { document_id: subject, number: first + i },
  }))
}

/** Delivers them, as the first ones or after a cursor. */
export function hand({ deps }: WebhookWorld, organizationId: string, after: number | null, documents: readonly string[]): Promise<boolean> {
  const events = changes(documents, (after ?? 0) + 1, deps.clock.now())
  return acceptEvents(deps, 'knowledge', { organizationId, after, cursor: (after ?? 0) + events.length, events })
}

/** Sends what is due, and what becomes due because of that, until nothing is left. */
export async function sendAll({ sender }: WebhookWorld): Promise<void> {
  const signal = new AbortController().signal
  // More rounds than any test's lanes need.
  for (let round = 0; round < 10; round++) {
    await sender.sendDue(signal)
    await sender.idle()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
