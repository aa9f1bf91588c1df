import type { ResolverContext } from '../../common/subgraph.ts'
import type { TranscriptionInput } from '../domain/transcription-request.ts'
import { createTranscription, type Transcription } from '../use-cases/create-transcription.ts'
import type { Deps } from '../use-cases/deps.ts'

type Context = ResolverContext<Deps>

export const transcriptionMutations = {
  createTranscription: (_parent: unknown, { input }: { input: TranscriptionInput }, { deps, ...ask }: Context) =>
    createTranscription(deps, ask, input),
}

export const TranscriptionFormatValues = { JSON: 'json', VERBOSE_JSON: 'verbose_json', SRT: 'srt', VTT: 'vtt' }
export const TimestampGranularityValues = { SEGMENT: 'segment', WORD: 'word' }
export const TranscriptionFactValues = { LOGPROBS: 'logprobs' }

export const TranscriptionFields = {
  model: ({ modelId }: Transcription, _args: unknown, { deps }: Context) => deps.catalog.find(modelId) ?? null,
  audioSeconds: ({ audioMilliseconds }: Transcription) => audioMilliseconds / 1_000,
}
