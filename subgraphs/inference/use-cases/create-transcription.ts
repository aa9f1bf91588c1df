import type { RateLimits } from '../../../schema/errors.ts'
import { refuse } from '../../common/check.ts'
import { KisError } from '../../common/errors.ts'
import { audioLengthOf, reportedAudio } from '../domain/audio-length.ts'
import { type Segment, srtOf, vttOf } from '../domain/subtitles.ts'
import { checkTranscriptionRequest, type TranscriptionFormat, type TranscriptionInput } from '../domain/transcription-request.ts'
import type { ProtocolObject } from '../ports/engines.ts'
import { admit } from './admit.ts'
import { billedCall } from './billed-call.ts'
import { type AskContext, type Deps, engineOf } from './deps.ts'
import { type LimitedCall, limited } from './limited-call.ts'

export interface Transcription {
  readonly text: string
  /** The protocol's object as the engine gave it, with `usage`. */
  readonly response: ProtocolObject
  /** Null unless they were asked for. */
  readonly subtitles: string | null
  readonly modelId: string
  readonly audioMilliseconds: number
  readonly cost: bigint
  readonly rateLimits: RateLimits | null
}

/** Writes down what is said in a file. @throws {KisError} nothing is charged. */
export function createTranscription(deps: Deps, ask: AskContext, input: TranscriptionInput): Promise<Transcription> {
  return limited(deps, ask, 'chat', (limits) => transcribe(deps, ask, limits, input))
}

async function transcribe(
  deps: Deps,
  ask: AskContext,
  limits: LimitedCall,
  input: TranscriptionInput,
): Promise<Omit<Transcription, 'rateLimits'>> {
  const { principal, request, model } = admit(deps.catalog, ask.caller, {
    audience: 'clients',
    kind: 'transcription',
    modelParam: 'model',
    check: () => checkTranscriptionRequest(input),
  })
  const { bytes } = request
  const audio = await deps.audio.read(bytes)
  if (!audio) return refuse('unsupported_file_type', 'contentBase64', 'The file is not sound in flac, mp3, mp4, m4a, ogg, wav or webm.')
  const length = audioLengthOf(audio, bytes.length)

  const { transcription } = engineOf(deps, model)
  if (!transcription) throw new Error(`the engine ${model.engine} has no transcriptions`)
  // Sound has no tokens: it is one request.
  const context = limits.admit(principal, 0)
  return billedCall(
    deps,
    context,
    { operation: 'transcription', model, ceiling: length.ceiling, atDispatch: length.own.quantities },
    () => length.own,
    async (signal) => {
      const call = { engineModel: model.engineModel, requestId: ask.requestId }
      const answer = await transcription.transcribe(call, { bytes, format: audio.format }, request.ask, signal)
      const usage = reportedAudio(answer) ?? length.own
      const { audioMilliseconds } = usage.quantities
      const response = { ...answer, usage: answer.usage ?? { type: 'duration', seconds: Math.ceil(audioMilliseconds / 1_000) } }
      return { value: { ...readAnswer(answer, request.format), response, modelId: model.id, audioMilliseconds }, usage }
    },
  )
}

function readAnswer(answer: ProtocolObject, format: TranscriptionFormat) {
  if (typeof answer.text !== 'string') throw new KisError('engine_error', 'The engine gave an answer without a text.')
  const text = answer.text
  if (format === 'json' || format === 'verbose_json') return { text, subtitles: null }
  if (!isSegments(answer.segments)) throw new KisError('engine_error', 'The engine gave an answer without segments, which subtitles need.')
  return { text, subtitles: format === 'srt' ? srtOf(answer.segments) : vttOf(answer.segments) }
}

function isSegments(value: unknown): value is readonly Segment[] {
  return Array.isArray(value) && value.every(isSegment)
}

function isSegment(value: unknown): boolean {
  const { start, end, text } = (value ?? {}) as { readonly [Field in keyof Segment]?: unknown }
  return typeof start === 'number' && start >= 0 && typeof end === 'number' && end >= start && typeof text === 'string'
}
