import type { ResolverContext } from '../../common/subgraph.ts'
import type { TranscriptionInput } from '../domain/transcription-request.ts'
import { createTranscription, type Transcription } from '../use-cases/create-transcription.ts'
import type { Deps } from '../use-cases/deps.ts'
import { isReplayed, onceForKey } from '../use-cases/once-for-key.ts'

type Context = ResolverContext<Deps>
type KeyedTranscriptionInput = TranscriptionInput & { readonly idempotencyKey?: string | null }

export const transcriptionMutations = {
  createTranscription(_parent: unknown, { input }: { input: KeyedTranscriptionInput }, { deps, ...ask }: Context) {
    const { idempotencyKey, ...request } = input
    const call = { operation: 'transcription', request, idempotencyKey } as const
    return onceForKey(deps, ask, call, (asking) => createTranscription(deps, asking, request))
  },
}

export const TranscriptionFormatValues = { JSON: 'json', VERBOSE_JSON: 'verbose_json', SRT: 'srt', VTT: 'vtt' }
export const TimestampGranularityValues = { SEGMENT: 'segment', WORD: 'word' }
export const TranscriptionFactValues = { LOGPROBS: 'logprobs' }

export const TranscriptionFields = {
  model: ({ modelId }: Transcription, _args: unknown, { deps }: Context) => deps.catalog.find(modelId) ?? null,
  replayed: isReplayed,
  audioSeconds: ({ audioMilliseconds }: Transcription) => audioMilliseconds / 1_000,
}
