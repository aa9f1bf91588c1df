import type { BillingDeps } from '../../use-cases/deps.ts'

/** Endpoints that one sweep checks. The next sweep continues after them. */
const PAGE_ENDPOINTS = 100
/** Pending events of one endpoint: as many as a receiver that comes back can still process. */
const MAX_WAITING = 100_000

/**
 * Deletes what is too old, and switches off endpoints with too many pending events. `after` is where the last sweep
 * ended. Returns where this one ended.
 */
export async function sweepWebhooks({ collections, clock, log }: BillingDeps, after: string): Promise<string> {
  const now = clock.now()
  while ((await collections.webhookDeliveries.deleteMany({ expiresAt: { $lt: now } })) > 0);
  while ((await collections.webhookEvents.deleteMany({ expiresAt: { $lt: now } })) > 0);
  const endpoints = await collections.webhookEndpoints.find({ _id: { $gt: after } }, { limit: PAGE_ENDPOINTS })
  for (const { _id } of endpoints.filter(({ isActive }) => isActive)) {
    if ((await collections.webhookDeliveries.countDocuments({ endpointId: _id, status: 'pending' })) <= MAX_WAITING) continue
    log.warn({ endpointId: _id }, 'a webhook endpoint was switched off: too many events wait for it')
    await collections.webhookEndpoints.findOneAndUpdate(
      { _id, isActive: true },
      { $set: { isActive: false, disabledReason: 'backlog', disabledAt: now } },
    )
  }
  return endpoints.length < PAGE_ENDPOINTS ? '' : endpoints.at(-1)!._id
}
