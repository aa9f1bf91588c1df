import type { Task } from '../process/tasks.ts'
import type { WebhookFeed, WebhookInbox, WebhookSource } from './webhook-events.ts'

/** How soon an event is delivered to the inbox. */
const ROUND_MS = 500
/** Pages of one organization in a round, so that a busy organization does not delay the others. */
const MAX_PAGES = 10

/**
 * Delivers the events of a source to the inbox. The inbox stores its position beside the events. So no crash loses or
 * repeats an event, and several processes may do the same work without a lease.
 */
export function webhookPump(source: WebhookSource, inbox: WebhookInbox): Task {
  return { name: 'deliver_to_webhooks', everyMs: ROUND_MS, run: (signal) => pumpOnce(source, inbox, signal) }
}

/** Runs one round. */
async function pumpOnce(source: WebhookSource, inbox: WebhookInbox, signal: AbortSignal): Promise<void> {
  for (let after: string | null = null; ; ) {
    const feeds: readonly WebhookFeed[] = await inbox.feeds(after, signal)
    if (feeds.length === 0) return
    after = feeds.at(-1)!.organizationId
    const ends = await source.ends(feeds.map(({ organizationId }) => organizationId))
    for (const feed of feeds) if ((ends.get(feed.organizationId) ?? 0) > (feed.cursor ?? 0)) await handOver(source, inbox, feed, signal)
  }
}

async function handOver(
  source: WebhookSource,
  inbox: WebhookInbox,
  { organizationId, cursor: from, since }: WebhookFeed,
  signal: AbortSignal,
) {
  let after = from
  for (let page = 0; page < MAX_PAGES && !signal.aborted; page++) {
    const { events, cursor } = await source.read(organizationId, after ?? (await source.positionBefore(organizationId, since)))
    if (cursor === after) return
    await inbox.accept({ organizationId, after, cursor, events }, signal)
    after = cursor
  }
}
