import { readTextDelta } from '../domain/transcription/transcript-events.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { streamOnceForKey } from '../use-cases/idempotency/stream-once-for-key.ts'
import { createTranscription } from '../use-cases/transcription/create-transcription.ts'
import { streamTranscription, type TranscriptionEvent } from '../use-cases/transcription/stream-transcription.ts'
import { describeTranscriptionModel, transcribeDocument } from '../use-cases/transcription/transcribe-document.ts'
import type {
  MutationResolvers,
  QueryResolvers,
  SubscriptionResolvers,
  TranscriptionEventResolvers,
  TranscriptionResolvers,
} from './generated.ts'

export const transcriptionQueries: QueryResolvers = {
  transcriptionModel: (_parent, { id }, { deps, ...requestContext }) => describeTranscriptionModel(deps, requestContext, id),
}

export const transcriptionMutations: MutationResolvers = {
  createTranscription(_parent, { input }, { deps, ...requestContext }) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'transcription', request, idempotencyKey } as const
    return onceForKey(deps, requestContext, call, (effectiveContext) => createTranscription(deps, effectiveContext, request))
  },
  async transcribeDocument(_parent, { input }, { deps, ...requestContext }) {
    return { segments: await transcribeDocument(deps, requestContext, input) }
  },
}

export const transcriptionSubscriptions: SubscriptionResolvers = {
  transcription: {
    subscribe(_parent, { input }, { deps, ...requestContext }) {
      const { idempotencyKey, ...request } = input
      const call = { operation: 'transcription_stream', request, idempotencyKey } as const
      return streamOnceForKey(deps, requestContext, call, (effectiveContext) => streamTranscription(deps, effectiveContext, request))
    },
    resolve: (event: TranscriptionEvent) => event,
  },
}

export const TranscriptionFields: TranscriptionResolvers = {
  model: ({ modelId }, _args, { deps }) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
  audioSeconds: ({ audioMilliseconds }) => audioMilliseconds / 1_000,
}

export const TranscriptionEventFields: TranscriptionEventResolvers = {
  textDelta: ({ events }) => readTextDelta(events),
  audioSeconds: ({ audioMilliseconds }) => audioMilliseconds && audioMilliseconds / 1_000,
  replayed: isReplayed,
}
