import type { EventType } from '../../../schema/events.ts'

/** An event as a subgraph hands it over. */
export interface WebhookEvent {
  readonly type: EventType
  /** What it happened to: the events of one subject reach an endpoint in their order. */
  readonly subject: string
  /** Its place in the log of its source, 1 or more. */
  readonly sequence: number
  readonly at: Date
  /** As `schema/events.yaml` describes it. */
  readonly data: Readonly<Record<string, unknown>>
}

/** What is told of one organization, and how far. */
export interface WebhookFeed {
  readonly organizationId: string
  /** Events up to here are handed over; null: none yet. */
  readonly cursor: number | null
  /** Events before it are of no interest. */
  readonly since: Date
}

/** The events of one subgraph, by organization, numbered. */
export interface WebhookSource {
  /** The sequences of the last events; an organization without events is not named. */
  ends(organizationIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Where to begin so that no event since then is missed. */
  positionBefore(organizationId: string, since: Date): Promise<number>
  /** What follows a position, and up to where; at most a page. Asked again, it gives the same events. */
  read(organizationId: string, after: number): Promise<{ readonly events: readonly WebhookEvent[]; readonly cursor: number }>
}

/** Where events are kept and sent from. */
export interface WebhookInbox {
  /** The organizations that are told of events of this source, a page at a time by organization. */
  feeds(after: string | null, signal: AbortSignal): Promise<readonly WebhookFeed[]>
  /** Keeps the events and moves the feed on; does nothing when the feed is elsewhere by then. Repeatable. */
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
