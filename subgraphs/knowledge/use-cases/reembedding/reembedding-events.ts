import type { EventData, EventRecord } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { ReembeddingRecord } from '../../domain/records.ts'
import { costOf } from './reembeddings.ts'

/** Returns the event data of an ended re-embedding. */
export function describeEnd(reembedding: ReembeddingRecord): EventData {
  const { collectionId, embeddingModel, formerModel, outcome, done, tokens, error } = reembedding
  const ended = {
    outcome,
    embeddingModel,
    formerModel,
    passages: done,
    tokens,
    errorCode: outcome === 'failed' ? (error?.code ?? null) : null,
  }
  return { kind: 'reembedding', collectionId, ...ended, cost: formatUsd(costOf(reembedding)) }
}

/** Returns the webhook event of an ended re-embedding. */
export function toEndEvent({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  return {
    type: `reembedding.${data.outcome as NonNullable<ReembeddingRecord['outcome']>}`,
    subject,
    sequence,
    at,
    data: {
      reembedding_id: subject,
      collection_id: data.collectionId,
      embedding_model: data.embeddingModel,
      former_model: data.formerModel,
      status: data.outcome,
      passages: data.passages,
      tokens: data.tokens,
      cost_usd: data.cost,
      error_code: data.errorCode,
    },
  }
}
