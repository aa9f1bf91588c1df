import type { Clock } from '../process/clock.ts'
import { keepWorking } from '../process/keep-working.ts'
import type { Log } from '../process/log.ts'
import type { WebhookFeed, WebhookInbox, WebhookSource } from './webhook-events.ts'

/** How soon an event is delivered to the inbox. */
const ROUND_MS = 500
/** While the inbox is away, the pauses grow up to this. */
const MAX_PAUSE_MS = 10_000
/** A part of the service that is starting may be away for this many rounds. */
const MAX_QUIET_FAILURES = 5
/** Pages of one organization in a round, so that a busy organization does not delay the others. */
const MAX_PAGES = 10

/**
 * Delivers the events of a source to the inbox until the signal aborts. The inbox stores its position beside the
 * events. So no crash loses or repeats an event, and several processes may do the same work without a lease.
 */
export async function pumpWebhooks(
  source: WebhookSource,
  inbox: WebhookInbox,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const pauseMs = (failures: number) => Math.min(ROUND_MS * 2 ** failures, MAX_PAUSE_MS)
  const failed = (error: unknown, failures: number) =>
    log[failures > MAX_QUIET_FAILURES ? 'warn' : 'info'](
      { err: error },
      'events could not be delivered to the webhook inbox; they are tried again',
    )
  await keepWorking(() => pumpOnce(source, inbox, signal), { clock, pauseMs, failed }, signal)
}

/** Runs one round. */
export async function pumpOnce(source: WebhookSource, inbox: WebhookInbox, signal: AbortSignal): Promise<void> {
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
