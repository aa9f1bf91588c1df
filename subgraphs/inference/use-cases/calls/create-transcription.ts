import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { type Segment, toSrt, toVtt } from '../../domain/transcription/subtitles.ts'
import {
  checkTranscriptionRequest,
  type TranscriptionFormat,
  type TranscriptionInput,
} from '../../domain/transcription/transcription-request.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { AskContext, CallDeps } from '../deps.ts'
import { limited } from './limited-call.ts'
import { type Transcribed, transcribe } from './transcribe.ts'

export interface Transcription extends Transcribed {
  readonly text: string
  /** The protocol's object as the engine returned it, with `usage`. */
  readonly response: ProtocolObject
  /** Null unless the caller asked for subtitles. */
  readonly subtitles: string | null
  readonly rateLimits: RateLimits | null
}

/**
 * Transcribes the speech in a file.
 * @throws {KisError} the error of a check or of the engine; nothing is charged.
 */
export function createTranscription(deps: CallDeps, ask: AskContext, input: TranscriptionInput): Promise<Transcription> {
  const check = () => checkTranscriptionRequest(input)
  return limited(deps, ask, 'chat', (limits, asking) =>
    transcribe(deps, asking, limits, check, {
      hear: ({ engine, call, sound, request }, signal) => engine.transcribe(call, sound, request.ask, signal),
      tell: (response) => ({ text: response.text, response, subtitles: toSubtitles(response, input.responseFormat ?? 'json') }),
    }),
  )
}

function toSubtitles({ segments }: ProtocolObject, format: TranscriptionFormat): string | null {
  if (format !== 'srt' && format !== 'vtt') return null
  if (!isSegments(segments)) throw new KisError('engine_error', 'The engine gave an answer without segments, which subtitles need.')
  return format === 'srt' ? toSrt(segments) : toVtt(segments)
}

function isSegments(value: unknown): value is readonly Segment[] {
  return Array.isArray(value) && value.every(isSegment)
}

function isSegment(value: unknown): boolean {
  const { start, end, text } = (value ?? {}) as { readonly [Field in keyof Segment]?: unknown }
  return typeof start === 'number' && start >= 0 && typeof end === 'number' && end >= start && typeof text === 'string'
}
