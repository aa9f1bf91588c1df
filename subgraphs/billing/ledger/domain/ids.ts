import { hash } from 'node:crypto'
import type { LedgerEntry } from './ledger.ts'

/**
 * Ids derived from the objects that they identify, so that repeating an operation creates the same document. The
 * organization is part of each, so that no other organization can take the id.
 */
function derivedId(prefix: 'ent' | 'use' | 'evt' | 'whd' | 'lane', organizationId: string, ...facts: readonly string[]): string {
  return `${prefix}_${digestOf(organizationId, ...facts).slice(0, 32)}`
}

function digestOf(...facts: readonly string[]): string {
  return hash('sha256', facts.join('\n'))
}

/** Returns the id of the entry of a top-up or an adjustment. */
export function creditEntryId(organizationId: string, reference: string): string {
  return derivedId('ent', organizationId, 'credit', reference)
}

/** The ids of the entry that ends a hold, and of the usage record of its call. */
interface EndIds {
  readonly entry: string
  readonly usage: string
}

/** Returns unordered ids, the form of version 0.2 and earlier. */
export function digestIds(organizationId: string, holdId: string): EndIds {
  return { entry: derivedId('ent', organizationId, 'end', holdId), usage: derivedId('use', organizationId, holdId) }
}

/**
 * Returns UUIDv7 with the time and the counter of the hold's id, so that a store adds documents at the end of its
 * tables. With unordered ids, each document of a batch changes a page of its own.
 */
export function sortedIds(organizationId: string, holdId: string): EndIds {
  const [, sortable] = /^hold_([0-9a-f]{16})/.exec(holdId)!
  const digest = digestOf(organizationId, holdId)
  const variant = ((Number.parseInt(digest[0]!, 16) & 0x3) | 0x8).toString(16)
  const id = `${sortable}${variant}${digest.slice(1, 16)}`
  return { entry: `ent_${id}`, usage: `use_${id}` }
}

/**
 * Returns the id of the usage record of the call that this entry has ended: both were written at once, with ids of one
 * form.
 */
export function usageRecordIdOf({ _id, organizationId, reference }: Pick<LedgerEntry, '_id' | 'organizationId' | 'reference'>): string {
  const digest = digestIds(organizationId, reference)
  return _id === digest.entry ? digest.usage : sortedIds(organizationId, reference).usage
}

/** Returns the id of a webhook event. Receivers see this id. */
export function webhookEventId(organizationId: string, source: string, type: string, sequence: number): string {
  return derivedId('evt', organizationId, source, type, String(sequence))
}

const PING_MS = 60_000

/**
 * Returns the id of an endpoint's ping. The pings of one minute are one event, because each event is retained for two
 * weeks, in the store with the money.
 */
export function pingEventId(organizationId: string, endpointId: string, at: Date): string {
  return webhookEventId(organizationId, endpointId, 'ping', Math.floor(at.getTime() / PING_MS))
}

/** Returns the id of the delivery of an event to an endpoint. */
export function webhookDeliveryId(organizationId: string, endpointId: string, eventId: string): string {
  return derivedId('whd', organizationId, endpointId, eventId)
}

/** Returns the id of the queue of one subject's deliveries to an endpoint. */
export function webhookLaneId(organizationId: string, endpointId: string, subject: string): string {
  return derivedId('lane', organizationId, endpointId, subject)
}
