import type { EventRecord } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { isDocumentEvent, toWebhookEvent } from '../documents/document-events.ts'
import { toFallEvent } from '../evaluation/evaluation-events.ts'
import { toEndEvent } from '../reembedding/reembedding-events.ts'

/** Returns the webhook event for an event of the log of documents, evaluations and re-embeddings. */
export function toKnowledgeEvent(event: EventRecord): WebhookEvent {
  if (isDocumentEvent(event)) return toWebhookEvent(event)
  return event.data.kind === 'reembedding' ? toEndEvent(event) : toFallEvent(event)
}
