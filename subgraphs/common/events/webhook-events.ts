import type { EventType } from '../../../schema/events.ts'
import { billingOperation } from '../../../schema/operations.ts'
import type { ServicePrincipal } from '../identity/principal.ts'
import { type Link, type LinkContext, request } from '../link/link.ts'
import type { Task } from '../process/tasks.ts'

/** An event in the form in which a subgraph delivers it. */
export interface WebhookEvent {
  readonly type: EventType
  /** The object of the event. An endpoint gets the events of one subject in order. */
  readonly subject: string
  /** The event's number in the log of its source, from 1. */
  readonly sequence: number
  readonly at: Date
  /** The data described in `schema/events.yaml`. */
  readonly data: Readonly<Record<string, unknown>>
}

/** The progress of one organization's deliveries. */
export interface WebhookFeed {
  readonly organizationId: string
  /** Events up to this number are delivered; null: none yet. */
  readonly cursor: number | null
  /** Earlier events are not needed. */
  readonly since: Date
}

/** The events of one subgraph, numbered for each organization. */
export interface WebhookSource {
  /** Returns the numbers of the last events; omits organizations without events. */
  ends(organizationIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Returns a position such that every event since then comes after it. */
  positionBefore(organizationId: string, since: Date): Promise<number>
  /**
   * Returns the events after a position, at most a page, and the position of the last one. Repeated calls return the
   * same events.
   */
  read(organizationId: string, after: number): Promise<{ readonly events: readonly WebhookEvent[]; readonly cursor: number }>
}

/** Stores events and sends them. */
export interface WebhookInbox {
  /** Lists the organizations that want events of this source, a page at a time, in order of their ids. */
  feeds(after: string | null, signal: AbortSignal): Promise<readonly WebhookFeed[]>
  /** Stores the events and advances the feed. Does nothing if the feed has moved meanwhile. Idempotent. */
  accept(
    page: {
      readonly organizationId: string
      readonly after: number | null
      readonly cursor: number
      readonly events: readonly WebhookEvent[]
    },
    signal: AbortSignal,
  ): Promise<void>
}

/** Interval of deliveries to the inbox. */
const ROUND_MS = 500
/** Pages of one organization in a round, so that a busy organization does not delay the others. */
const MAX_PAGES = 10

/**
 * Delivers the events of a source to the inbox. The inbox stores its position beside the events, so no crash loses or
 * repeats an event, and several processes may do the same work without a lease.
 */
export function webhookPump(source: WebhookSource, inbox: WebhookInbox): Task {
  return { name: 'deliver_to_webhooks', everyMs: ROUND_MS, run: (signal) => pumpOnce(source, inbox, signal) }
}

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

const FEEDS = billingOperation('query WebhookFeeds($after: ID) { webhookFeeds(after: $after) { organizationId cursor since } }')
const ACCEPT = billingOperation('mutation AcceptWebhookEvents($input: AcceptWebhookEventsInput!) { acceptWebhookEvents(input: $input) }')

/** Returns billing's inbox for the events of this service. */
export function inboxOver(link: Link, service: ServicePrincipal['service']): WebhookInbox {
  const buildContext = (signal: AbortSignal): LinkContext => ({ caller: { service }, requestId: 'webhooks', signal })
  return {
    async feeds(after, signal) {
      const { webhookFeeds } = await request(link, { query: FEEDS, variables: { after } }, buildContext(signal))
      return webhookFeeds.map(({ since, ...feed }) => ({ ...feed, since: new Date(since) }))
    },

    async accept({ events, ...page }, signal) {
      const input = { ...page, events: events.map(({ at, ...event }) => ({ ...event, at: at.toISOString() })) }
      await request(link, { query: ACCEPT, variables: { input } }, buildContext(signal))
    },
  }
}
