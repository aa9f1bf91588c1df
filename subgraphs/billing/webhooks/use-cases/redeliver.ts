import { KisError, NotFound } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { pingEventId, webhookLaneId } from '../../ledger/domain/ids.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { eventOrder, eventPosition, type WebhookDelivery, type WebhookEndpoint, type WebhookEventRecord } from '../domain/records.ts'
import { RETENTION_MS } from './accept-events.ts'
import { getEndpoint } from './endpoints.ts'
import { getDelivery, type LoggedDelivery } from './list-deliveries.ts'
import { newDelivery, openLane } from './queue-delivery.ts'

/** Events that one call queues again. The answer gives the cursor for the next call. */
const MAX_REDELIVERED = 100
const CURSOR = /^\d{4}-[0-9T:.-]+Z(_evt_[0-9a-f]{32})?$/

/**
 * Sends an event to the endpoint again, under the same id. If it is still waiting, it is sent now.
 * @throws {KisError} `not_found`: there is no such delivery; `invalid_request`: the endpoint is off
 */
export async function redeliver(
  deps: BillingDeps,
  principal: Principal,
  { endpointId, id }: { readonly endpointId: string; readonly id: string },
): Promise<LoggedDelivery> {
  await requireActive(deps, principal, endpointId)
  const { delivery, event } = await getDelivery(deps, principal, endpointId, id)
  await queueAgain(deps, delivery)
  return { delivery: (await deps.collections.webhookDeliveries.findOne({ _id: id })) ?? delivery, event }
}

interface Redelivered {
  readonly count: number
  /** Cursor for the next call; null: that was all. */
  readonly next: string | null
}

/**
 * Sends again every stored event since a time that has one of the endpoint's types, even from before the endpoint
 * existed or while it was off.
 */
export async function redeliverSince(
  deps: BillingDeps,
  principal: Principal,
  { endpointId, since, after }: { readonly endpointId: string; readonly since: Date; readonly after?: string | null },
): Promise<Redelivered> {
  const endpoint = await requireActive(deps, principal, endpointId)
  if (after != null && !CURSOR.test(after))
    throw new KisError('invalid_request', 'The cursor does not come from a redelivery.', { param: 'after' })
  const events = await deps.collections.webhookEvents.find(
    { organizationId: endpoint.organizationId, order: after == null ? { $gte: since.toISOString() } : { $gt: after } },
    { sort: { order: 1 }, limit: MAX_REDELIVERED },
  )
  const wanted = events.filter(({ type }) => endpoint.eventTypes.includes(type))
  const lanes = Map.groupBy(
    wanted.map((event) => newDelivery(endpoint, event)),
    ({ queuedIn }) => queuedIn,
  )
  // Several lanes at once, so that their writes share commits.
  await Promise.all([...lanes.values()].map((deliveries) => queueInLane(deps, deliveries)))
  deps.webhooksDue()
  return { count: wanted.length, next: events.length < MAX_REDELIVERED ? null : events.at(-1)!.order }
}

/** Sends the endpoint a `ping`, whatever types it wants: the one of this minute, again if it was sent. */
export async function pingEndpoint(deps: BillingDeps, principal: Principal, endpointId: string): Promise<LoggedDelivery> {
  const endpoint = await requireActive(deps, principal, endpointId)
  const { organizationId } = endpoint
  const { webhookEvents, webhookDeliveries } = deps.collections
  const at = deps.clock.now()
  const _id = pingEventId(organizationId, endpointId, at)
  const created: WebhookEventRecord = {
    _id,
    organizationId,
    type: 'ping',
    subject: endpointId,
    order: eventOrder(at, _id),
    position: eventPosition(at.getTime(), 'ping'),
    at,
    data: JSON.stringify({ webhook_id: endpointId }),
    expiresAt: new Date(at.getTime() + RETENTION_MS),
  }
  await webhookEvents.insertMissing([created])
  const event = (await webhookEvents.findOne({ _id })) ?? created
  const delivery = newDelivery(endpoint, event)
  await queueInLane(deps, [delivery])
  deps.webhooksDue()
  return { delivery: (await webhookDeliveries.findOne({ _id: delivery._id })) ?? delivery, event }
}

async function requireActive(deps: BillingDeps, principal: Principal, endpointId: string): Promise<WebhookEndpoint> {
  const endpoint = await getEndpoint(deps, principal, endpointId)
  if (!endpoint.isActive) throw new KisError('invalid_request', 'The webhook is off; switch it on first.', { param: 'id' })
  return endpoint
}

/** Queues deliveries of one lane in order. Those that exist already are queued again. */
async function queueInLane(deps: BillingDeps, deliveries: readonly WebhookDelivery[]): Promise<void> {
  const { webhookDeliveries } = deps.collections
  const ids = deliveries.map(({ _id }) => _id)
  const known = await webhookDeliveries.find({ _id: { $in: ids } }, { limit: ids.length })
  if (known.length === 0) await webhookDeliveries.insertMissing(deliveries)
  else for (const delivery of deliveries) if ((await webhookDeliveries.insertMissing([delivery])) === 0) await setPending(deps, delivery)
  const [first] = deliveries
  await openLane(deps, first!)
  if (known.length > 0) await markDue(deps, first!)
}

/** Sends it at once, unless its subject is just being sent. */
async function queueAgain(deps: BillingDeps, delivery: WebhookDelivery): Promise<void> {
  const pending = await setPending(deps, delivery)
  await openLane(deps, pending)
  await markDue(deps, pending)
  deps.webhooksDue()
}

/** With all its attempts to come. */
async function setPending({ collections }: BillingDeps, { _id, organizationId, endpointId, subject }: WebhookDelivery) {
  const queuedIn = webhookLaneId(organizationId, endpointId, subject)
  const changed = await collections.webhookDeliveries.findOneAndUpdate({ _id }, { $set: { status: 'pending', tries: 0, queuedIn } })
  if (!changed) throw new NotFound('delivery', _id, 'id')
  return changed
}

async function markDue({ collections, clock }: BillingDeps, { queuedIn }: WebhookDelivery): Promise<void> {
  await collections.webhookLanes.findOneAndUpdate({ _id: queuedIn!, 'job.lease': null }, { $set: { 'job.dueAt': clock.now() } })
}
