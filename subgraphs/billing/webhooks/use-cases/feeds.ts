import type { EventSource } from '../../../../schema/events.ts'
import type { WebhookFeed, WebhookInbox } from '../../../common/events/webhook-events.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { acceptEvents } from './accept-events.ts'

/** Feeds of one page. */
const PAGE_FEEDS = 100

/** Lists the organizations that have, or had, endpoints for events of this source. */
export function listFeeds(
  { collections }: Pick<BillingDeps, 'collections'>,
  source: EventSource,
  after: string | null,
): Promise<readonly WebhookFeed[]> {
  const filter = { source, ...(after !== null && { organizationId: { $gt: after } }) }
  return collections.webhookFeeds.find(filter, { sort: { organizationId: 1 }, limit: PAGE_FEEDS })
}

/** Billing's own inbox, for its own events. */
export function ownInbox(deps: BillingDeps): WebhookInbox {
  return {
    feeds: (after) => listFeeds(deps, 'billing', after),
    async accept(page) {
      await acceptEvents(deps, 'billing', page)
    },
  }
}
