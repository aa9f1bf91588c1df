import { createHash } from 'node:crypto'

/**
 * Ids derived from what they stand for, so that doing the same thing twice makes the same document. The organization is
 * part of each, so that no other organization can take the id.
 */
function derivedId(prefix: 'ent' | 'use' | 'evt' | 'whd' | 'lane', organizationId: string, ...facts: readonly string[]): string {
  const digest = createHash('sha256')
    .update([organizationId, ...facts].join('\n'))
    .digest('hex')
  return `${prefix}_${digest.slice(0, 32)}`
}

/** The entry of a top-up or an adjustment. */
export function creditEntryId(organizationId: string, reference: string): string {
  return derivedId('ent', organizationId, 'credit', reference)
}

/** The entry that ends a hold. */
export function endEntryId(organizationId: string, holdId: string): string {
  return derivedId('ent', organizationId, 'end', holdId)
}

/** The usage record of the call behind a hold. */
export function usageRecordId(organizationId: string, holdId: string): string {
  return derivedId('use', organizationId, holdId)
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
