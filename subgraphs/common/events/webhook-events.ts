import type { EventType } from '../../../schema/events.ts'

/** An event as a subgraph delivers it. */
export interface WebhookEvent {
  readonly type: EventType
  /** What the event is about. An endpoint gets the events of one subject in order. */
  readonly subject: string
  /** Its number in the log of its source, from 1. */
  readonly sequence: number
  readonly at: Date
  /** As described in `schema/events.yaml`. */
  readonly data: Readonly<Record<string, unknown>>
}

/** One organization's deliveries, and how far they are. */
export interface WebhookFeed {
  readonly organizationId: string
  /** Events up to this number are delivered; null: none yet. */
  readonly cursor: number | null
  /** Earlier events are not needed. */
  readonly since: Date
}

/** The events of one subgraph, numbered for each organization. */
export interface WebhookSource {
  /** Gives the numbers of the last events; omits organizations without events. */
  ends(organizationIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Gives a position from which no event since then is missed. */
  positionBefore(organizationId: string, since: Date): Promise<number>
  /**
   * Gives the events after a position, at most a page, and the position of the last one. Repeated calls give the same
   * events.
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
