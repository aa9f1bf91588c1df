import type { EventCollections } from './event-log.ts'

/** Deletes the log of an organization. True if there was none. Can be repeated. */
export async function eraseEvents({ events, eventHeads }: EventCollections, organizationId: string): Promise<boolean> {
  let isEmpty = true
  while ((await events.deleteMany({ organizationId })) > 0) isEmpty = false
  return (await eventHeads.findOneAndDelete({ _id: organizationId })) === null && isEmpty
}
