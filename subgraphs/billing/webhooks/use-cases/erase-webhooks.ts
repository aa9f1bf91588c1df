import type { EventSource } from '../../../../schema/events.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { purgeQueue } from './endpoints.ts'

const SOURCES: readonly EventSource[] = ['billing', 'knowledge', 'inference']
const PAGE = 100

/** Deletes the organization's endpoints, feeds and events. Can be repeated. */
export async function eraseWebhooks({ collections }: Pick<BillingDeps, 'collections'>, organizationId: string): Promise<void> {
  const { webhookEndpoints, webhookFeeds, webhookEvents } = collections
  for (;;) {
    const endpoints = await webhookEndpoints.find({ organizationId }, { limit: PAGE })
    for (const { _id } of endpoints) {
      await webhookEndpoints.findOneAndDelete({ _id })
      await purgeQueue({ collections }, _id)
    }
    if (endpoints.length < PAGE) break
  }
  for (const source of SOURCES) await webhookFeeds.findOneAndDelete({ source, organizationId })
  while ((await webhookEvents.deleteMany({ organizationId })) > 0);
}
