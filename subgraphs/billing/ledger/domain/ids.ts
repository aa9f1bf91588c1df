import { hash } from 'node:crypto'
import type { LedgerEntry } from './ledger.ts'

/**
 * Ids derived from what they stand for, so that doing the same thing twice makes the same document. The organization is
 * part of each, so that no other organization can take the id.
 */
function derivedId(prefix: 'ent' | 'use' | 'evt' | 'whd' | 'lane', organizationId: string, ...facts: readonly string[]): string {
  return `${prefix}_${digestOf(organizationId, ...facts).slice(0, 32)}`
}

function digestOf(...facts: readonly string[]): string {
  return hash('sha256', facts.join('\n'))
}

/**
 * A UUIDv7 with the time and the counter of the hold's id, so that a store adds documents at the end of its tables. With
 * random ids, each of a batch changes a page of its own.
 */
function idOfHold(prefix: 'ent' | 'use', organizationId: string, holdId: string): string {
  const [, sortable] = /^hold_([0-9a-f]{16})/.exec(holdId)!
  const digest = digestOf(organizationId, holdId)
  const variant = ((Number.parseInt(digest[0]!, 16) & 0x3) | 0x8).toString(16)
  return `${prefix}_${sortable}${variant}${digest.slice(1, 16)}`
}

/** The entry of a top-up or an adjustment. */
export function creditEntryId(organizationId: string, reference: string): string {
  return derivedId('ent', organizationId, 'credit', reference)
}

/** The entry that ends a hold. */
export function endEntryId(organizationId: string, holdId: string): string {
  return idOfHold('ent', organizationId, holdId)
}

/** The same where version 0.1 or an early 0.2 ended the hold. */
export function formerEndEntryId(organizationId: string, holdId: string): string {
  return derivedId('ent', organizationId, 'end', holdId)
}

/** The usage record of the call behind a hold. */
export function usageRecordId(organizationId: string, holdId: string): string {
  return idOfHold('use', organizationId, holdId)
}

/** The usage record of the call that this entry has ended, whichever version wrote both. */
export function usageRecordIdOf({ _id, organizationId, reference }: Pick<LedgerEntry, '_id' | 'organizationId' | 'reference'>): string {
  const isFormer = _id === formerEndEntryId(organizationId, reference)
  return isFormer ? derivedId('use', organizationId, reference) : usageRecordId(organizationId, reference)
}

/** A webhook event. Receivers see this id. */
export function webhookEventId(organizationId: string, source: string, type: string, sequence: number): string {
  return derivedId('evt', organizationId, source, type, String(sequence))
}

/** The delivery of an event to an endpoint. */
export function webhookDeliveryId(organizationId: string, endpointId: string, eventId: string): string {
  return derivedId('whd', organizationId, endpointId, eventId)
}

/** The queue of one subject's deliveries to an endpoint. */
export function webhookLaneId(organizationId: string, endpointId: string, subject: string): string {
  return derivedId('lane', organizationId, endpointId, subject)
}
