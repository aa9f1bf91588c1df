import { EVENTS, type EventSource } from '../../../../schema/events.ts'
import { KisError } from '../../../common/errors.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { webhookEventId } from '../../ledger/domain/ids.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { eventOrder, eventPosition, type WebhookDelivery, type WebhookEndpoint, type WebhookEventRecord } from '../domain/records.ts'
import { MAX_ENDPOINTS } from './endpoints.ts'
import { newDelivery, openLane } from './queue-delivery.ts'

/**
 * How long events and deliveries are kept, for redelivery and the log: 14 days. What was not delivered by then is
 * dropped.
 */
export const RETENTION_MS = 14 * 86_400_000
/**
 * Clocks of processes may differ by this much (`common/link/shared-clock.ts`), so an event just before the endpoint's
 * creation may be sent too.
 */
const CLOCK_TOLERANCE_MS = 2_500
/** As the port allows. */
const MAX_INSERTED = 1_000

/** An event as a service delivers it. */
type HandedEvent = Omit<WebhookEvent, 'type' | 'data'> & { readonly type: string; readonly data: unknown }

interface EventPage {
  readonly organizationId: string
  /** Where the feed must be. */
  readonly after: number | null
  /** Where the feed is afterwards. */
  readonly cursor: number
  readonly events: readonly HandedEvent[]
}

/**
 * Stores the events of one page for the endpoints that want them, then advances the feed. Every id is derived from the
 * event, so a page that was half stored, or comes from two processes at once, is stored once. False: the feed is
 * elsewhere, and nothing was done.
 */
export async function acceptEvents(
  deps: BillingDeps,
  source: EventSource,
  { organizationId, after, cursor, events: handed }: EventPage,
): Promise<boolean> {
  const { webhookFeeds, webhookEndpoints, webhookEvents } = deps.collections
  const feedId = `${source}_${organizationId}`
  if (!(await webhookFeeds.findOne({ _id: feedId, cursor: after }))) return false
  const events = handed.filter((event) => isEventFrom(source, event))
  if (events.length < handed.length) throw new KisError('invalid_request', `Not all of these are events of ${source}.`, { param: 'events' })
  const endpoints = await webhookEndpoints.find({ organizationId }, { limit: MAX_ENDPOINTS })
  const wanted = events.filter(({ type }) => endpoints.some(({ eventTypes }) => eventTypes.includes(type)))
  const records = wanted.map((event) => toRecord(deps, organizationId, source, event))
  await webhookEvents.insertMissing(records)
  await queueForAll(deps, endpoints, records)
  return (await webhookFeeds.findOneAndUpdate({ _id: feedId, cursor: after }, { $set: { cursor } })) !== null
}

function isEventFrom(source: EventSource, event: HandedEvent): event is WebhookEvent {
  return (
    (EVENTS as Readonly<Record<string, EventSource | null>>)[event.type] === source && typeof event.data === 'object' && event.data !== null
  )
}

function toRecord(
  { clock }: BillingDeps,
  organizationId: string,
  source: EventSource,
  { type, subject, sequence, at, data }: WebhookEvent,
): WebhookEventRecord {
  const _id = webhookEventId(organizationId, source, type, sequence)
  return {
    _id,
    organizationId,
    type,
    subject,
    order: eventOrder(at, _id),
    position: eventPosition(sequence, type),
    at,
    data: JSON.stringify(data),
    expiresAt: new Date(clock.now().getTime() + RETENTION_MS),
  }
}

/**
 * Earlier events of one subject are written first: a lane may be emptied while it is filled, and must keep the order.
 */
async function queueForAll(
  deps: BillingDeps,
  endpoints: readonly WebhookEndpoint[],
  records: readonly WebhookEventRecord[],
): Promise<void> {
  const rounds: WebhookDelivery[][] = []
  const lanes = new Map<string, { readonly last: WebhookDelivery; readonly count: number }>()
  for (const event of records)
    for (const endpoint of endpoints) {
      if (!endpoint.isActive || !endpoint.eventTypes.includes(event.type)) continue
      if (event.at.getTime() < endpoint.createdAt.getTime() - CLOCK_TOLERANCE_MS) continue
      const delivery = newDelivery(endpoint, event)
      const round = lanes.get(delivery.queuedIn!)?.count ?? 0
      rounds[round] = [...(rounds[round] ?? []), delivery]
      lanes.set(delivery.queuedIn!, { last: delivery, count: round + 1 })
    }
  for (const round of rounds)
    for (let next = 0; next < round.length; next += MAX_INSERTED)
      await deps.collections.webhookDeliveries.insertMissing(round.slice(next, next + MAX_INSERTED))
  await Promise.all([...lanes.values()].map(({ last }) => openLane(deps, last)))
  if (lanes.size > 0) deps.webhooksDue()
}
