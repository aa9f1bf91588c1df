import type { EventLog, EventRecord, Telling } from './event-log.ts'
import type { WebhookEvent, WebhookSource } from './webhook-events.ts'

/** The events of an event log, for webhooks. */
export function eventLogSource<T extends Telling>(log: EventLog<T>, toEvent: (record: EventRecord) => WebhookEvent): WebhookSource {
  return {
    ends: (organizationIds) => log.ends(organizationIds),
    positionBefore: (organizationId, since) => log.positionBefore(organizationId, since),
    async read(organizationId, after) {
      const records = await log.page(organizationId, after)
      return { events: records.map(toEvent), cursor: records.at(-1)?.sequence ?? after }
    },
  }
}
