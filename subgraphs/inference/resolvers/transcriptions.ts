import type { ResolverContext } from '../../common/link/subgraph.ts'
import { textDeltaOf } from '../domain/transcription/transcript-events.ts'
import type { TranscriptionInput } from '../domain/transcription/transcription-request.ts'
import { createTranscription, type Transcription } from '../use-cases/calls/create-transcription.ts'
import { streamTranscription, type TranscriptionEvent } from '../use-cases/calls/stream-transcription.ts'
import type { Deps } from '../use-cases/deps.ts'
import { isReplayed, onceForKey } from '../use-cases/idempotency/once-for-key.ts'
import { streamOnceForKey } from '../use-cases/idempotency/stream-once-for-key.ts'

type Context = ResolverContext<Deps>
interface Input {
  readonly input: TranscriptionInput & { readonly idempotencyKey?: string | null }
}

export const transcriptionMutations = {
  createTranscription(_parent: unknown, { input }: Input, { deps, ...ask }: Context) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'transcription', request, idempotencyKey } as const
    return onceForKey(deps, ask, call, (asking) => createTranscription(deps, asking, request))
  },
}

export const transcriptionSubscriptions = {
  transcription: {
    subscribe(_parent: unknown, { input }: Input, { deps, ...ask }: Context) {
      const { idempotencyKey, ...request } = input
      const call = { operation: 'transcription_stream', request, idempotencyKey } as const
      return streamOnceForKey(deps, ask, call, (asking) => streamTranscription(deps, asking, request))
    },
    resolve: (event: TranscriptionEvent) => event,
  },
}

export const TranscriptionFormatValues = {
  JSON: 'json',
  VERBOSE_JSON: 'verbose_json',
  DIARIZED_JSON: 'diarized_json',
  SRT: 'srt',
  VTT: 'vtt',
}
export const TimestampGranularityValues = { SEGMENT: 'segment', WORD: 'word' }
export const TranscriptionFactValues = { LOGPROBS: 'logprobs' }
export const ChunkingStrategyValues = { AUTO: 'auto', SERVER_VAD: 'server_vad' }

export const TranscriptionFields = {
  model: ({ modelId }: Transcription, _args: unknown, { deps }: Context) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
  audioSeconds: ({ audioMilliseconds }: Transcription) => audioMilliseconds / 1_000,
}

export const TranscriptionEventFields = {
  textDelta: ({ events }: TranscriptionEvent) => textDeltaOf(events),
  audioSeconds: ({ audioMilliseconds }: TranscriptionEvent) => audioMilliseconds && audioMilliseconds / 1_000,
  replayed: isReplayed,
}
