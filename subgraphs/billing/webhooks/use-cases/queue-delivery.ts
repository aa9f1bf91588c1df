import { webhookDeliveryId, webhookLaneId } from '../../ledger/domain/ids.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { WebhookDelivery, WebhookEndpoint, WebhookEventRecord } from '../domain/records.ts'

/** Returns a pending delivery. */
export function newDelivery({ _id: endpointId, organizationId }: WebhookEndpoint, event: WebhookEventRecord): WebhookDelivery {
  const { _id: eventId, subject, position, order, expiresAt } = event
  return {
    _id: webhookDeliveryId(organizationId, endpointId, eventId),
    organizationId,
    endpointId,
    eventId,
    subject,
    position,
    order,
    status: 'pending',
    queuedIn: webhookLaneId(organizationId, endpointId, subject),
    tries: 0,
    attempts: [],
    expiresAt,
  }
}

/**
 * Makes the lane of a delivery due. Call this function after the delivery is written, so that the sender finds it.
 * Idempotent.
 */
export async function openLane(
  { collections, clock }: Pick<BillingDeps, 'collections' | 'clock'>,
  { queuedIn, organizationId, endpointId, subject }: Omit<WebhookDelivery, '_id'>,
): Promise<void> {
  const job = { kind: 'send', dueAt: clock.now(), lease: null } as const
  await collections.webhookLanes.findOneAndUpdate(
    { _id: queuedIn! },
    { $inc: { revision: 1 }, $setOnInsert: { organizationId, endpointId, subject, job } },
    { upsert: true },
  )
}
