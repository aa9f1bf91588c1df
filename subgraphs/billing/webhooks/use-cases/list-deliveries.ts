import { NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { type Connection, type PageArguments, readPageById, toConnection } from '../../../common/link/connection.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { DeliveryStatus, WebhookDelivery, WebhookEventRecord } from '../domain/records.ts'
import { getEndpoint } from './endpoints.ts'

const ORDER = /^\d{4}-[0-9T:.-]+Z_evt_[0-9a-f]{32}$/
const DELIVERY_ID = /^whd_[0-9a-f]{32}$/

/** A delivery with its event. */
export interface LoggedDelivery {
  readonly delivery: WebhookDelivery
  readonly event: WebhookEventRecord
}

/**
 * Lists deliveries to one endpoint, latest event first.
 * @throws {NotFound} there is no such endpoint
 */
export async function listDeliveries(
  deps: BillingDeps,
  principal: Principal,
  { endpointId, status, ...args }: PageArguments & { readonly endpointId: string; readonly status?: DeliveryStatus | null },
): Promise<Connection<LoggedDelivery>> {
  await getEndpoint(deps, principal, endpointId)
  const { webhookDeliveries } = deps.collections
  const findKey = async (_id: string) => (await webhookDeliveries.findOne({ _id, endpointId }))?.order
  const page = await readPageById(args, ORDER, DELIVERY_ID, findKey)
  const filter = { endpointId, ...(status && { status }) }
  const rest = page.from !== null && { order: page.isBackward ? { $gt: page.from } : { $lt: page.from } }
  const deliveries = await webhookDeliveries.find({ ...filter, ...rest }, { sort: { order: page.isBackward ? 1 : -1 }, limit: page.limit })
  const count = (limit: number) => webhookDeliveries.countDocuments(filter, { limit })
  return toConnection(await withEvents(deps, deliveries), page, ({ delivery }) => delivery.order, count)
}

/** @throws {NotFound} there is no such delivery */
export async function getDelivery(deps: BillingDeps, principal: Principal, endpointId: string, id: string): Promise<LoggedDelivery> {
  await getEndpoint(deps, principal, endpointId)
  const logged = await findDelivery(deps, principal, id)
  if (logged?.delivery.endpointId !== endpointId) throw new NotFound('delivery', id, 'id')
  return logged
}

/** Returns a delivery. Null: the organization has no such delivery. */
export async function findDelivery(deps: BillingDeps, principal: Principal, id: string): Promise<LoggedDelivery | null> {
  const { organizationId } = requireScope(principal, 'admin')
  const delivery = await deps.collections.webhookDeliveries.findOne({ _id: id, organizationId })
  const [logged] = delivery ? await withEvents(deps, [delivery]) : []
  return logged ?? null
}

/**
 * Adds the events to deliveries. Events are deleted after their deliveries. A delivery without its event is left out.
 */
async function withEvents({ collections }: BillingDeps, deliveries: readonly WebhookDelivery[]): Promise<readonly LoggedDelivery[]> {
  if (deliveries.length === 0) return []
  const ids = deliveries.map(({ eventId }) => eventId)
  const events = await collections.webhookEvents.find({ _id: { $in: ids } }, { limit: ids.length })
  const byId = new Map(events.map((event) => [event._id, event]))
  return deliveries.flatMap((delivery) => {
    const event = byId.get(delivery.eventId)
    return event ? [{ delivery, event }] : []
  })
}
