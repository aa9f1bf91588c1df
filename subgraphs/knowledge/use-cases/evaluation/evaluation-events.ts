import type { EventData, EventRecord } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import type { Comparison } from '../../domain/evaluation/compare.ts'

/** Returns the event data of decreased measures. The figures are not integers, so they are stored as JSON. */
export function describeFall(collectionId: string, comparison: Comparison): EventData {
  return { kind: 'evaluation', collectionId, comparison: JSON.stringify(comparison) }
}

/** Returns the webhook event of decreased measures. */
export function toFallEvent({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  const { baselineId, questionCount, falls } = JSON.parse(data.comparison as string) as Comparison
  return {
    type: 'evaluation.score_fell',
    subject,
    sequence,
    at,
    data: {
      evaluation_id: subject,
      collection_id: data.collectionId,
      baseline_evaluation_id: baselineId,
      question_count: questionCount,
      falls,
    },
  }
}
