import type { EventSource, EventType } from '../../../../schema/events.ts'

/** Why the service has stopped sending to an endpoint. */
export type DisabledReason = 'gone' | 'failing' | 'backlog' | 'residency'

/** The URL to which an organization's events are sent. */
export type WebhookEndpoint = {
  /** `whe_…` */
  readonly _id: string
  readonly organizationId: string
  readonly url: string
  readonly description: string | null
  readonly eventTypes: readonly EventType[]
  readonly isActive: boolean
  /** Null: the endpoint is active, or its admin has switched it off. */
  readonly disabledReason: DisabledReason | null
  readonly disabledAt: Date | null
  /** When the current series of failed attempts started; null: the last attempt succeeded. */
  readonly failingSince: Date | null
  /**
   * The endpoint's secret is derived from this nonce and the key pepper. After a rotation, the earlier secret also
   * signs for a while.
   */
  readonly nonce: string
  readonly previousNonce: string | null
  readonly previousUntil: Date | null
  /**
   * The endpoint's secret, sealed, if version 0.2 has rotated the secret of the service: receivers have it, so it must
   * not change.
   */
  readonly sealedSecret?: string
  /** The sealed secret of `previousNonce`, as `sealedSecret`. */
  readonly sealedPreviousSecret?: string
  readonly createdAt: Date
}

/** An event, retained for a while so that it can be sent again. */
export type WebhookEventRecord = {
  /** `evt_…`: the `webhook-id` of each of its deliveries. */
  readonly _id: string
  readonly organizationId: string
  readonly type: EventType
  readonly subject: string
  /** Sorts an organization's events by time: `eventOrder`. */
  readonly order: string
  /** Sorts the events of a subject: `eventPosition`. */
  readonly position: string
  readonly at: Date
  /** The data, as JSON. */
  readonly data: string
  readonly expiresAt: Date
}

export type DeliveryStatus = 'pending' | 'delivered' | 'failed'

/** One request to an endpoint. */
export type DeliveryAttempt = {
  readonly at: Date
  /** Null: there was no response. */
  readonly statusCode: number | null
  readonly durationMs: number
  /** Null: the endpoint has accepted the event. */
  readonly error: string | null
  /** The start of the response; null: there was none, or it was not text. */
  readonly responseStart: string | null
}

/** The delivery of an event to an endpoint. */
export type WebhookDelivery = {
  /** `whd_…` */
  readonly _id: string
  readonly organizationId: string
  readonly endpointId: string
  readonly eventId: string
  readonly subject: string
  readonly position: string
  /** The `order` of its event. */
  readonly order: string
  readonly status: DeliveryStatus
  /** The lane, while the delivery is pending. */
  readonly queuedIn?: string
  /** Attempts since the delivery was last queued. */
  readonly tries: number
  /** The latest attempts, oldest first. */
  readonly attempts: readonly DeliveryAttempt[]
  readonly expiresAt: Date
}

/** The pending deliveries of one subject to one endpoint, which are sent one after the other. */
export type WebhookLane = {
  readonly _id: string
  readonly organizationId: string
  readonly endpointId: string
  readonly subject: string
  /**
   * Grows with every queued delivery, so that a lane that was found empty is not removed if a delivery was queued
   * meanwhile.
   */
  readonly revision: number
  readonly job: { readonly kind: 'send'; readonly dueAt: Date; readonly lease: string | null }
}

/** The position up to which the log of a source has been delivered to the inbox. */
export type WebhookFeedRecord = {
  /** Source and organization. */
  readonly _id: string
  readonly source: EventSource
  readonly organizationId: string
  readonly cursor: number | null
  readonly since: Date
}

/** Returns time and id in one string, so that a page starts after it with a single comparison. */
export function eventOrder(at: Date, id: string): string {
  return `${at.toISOString()}_${id}`
}

/**
 * Returns the position in the log, then the type, because one entry may cause two events. 16 digits represent every
 * safe integer.
 */
export function eventPosition(sequence: number, type: EventType): string {
  return `${String(sequence).padStart(16, '0')}_${type}`
}
