import type { RateLimits } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { readSegments } from '../../domain/transcription/segments.ts'
import { toSrt, toVtt } from '../../domain/transcription/subtitles.ts'
import {
  checkTranscriptionRequest,
  type TranscriptionFormat,
  type TranscriptionInput,
} from '../../domain/transcription/transcription-request.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { limited } from '../calls/limited-call.ts'
import type { CallDeps, RequestContext } from '../deps.ts'
import { ofCaller, type Transcribed, transcribe } from './transcribe.ts'

/** The whole result of a transcription call that was not streamed. */
export interface Transcription extends Transcribed {
  readonly text: string
  /** The protocol's object as the engine returned it, with `usage`. */
  readonly response: ProtocolObject
  /** Null unless the caller requested subtitles. */
  readonly subtitles: string | null
  readonly rateLimits: RateLimits | null
}

/**
 * Transcribes the speech in a file.
 * @throws {KisError} the error of a check or of the engine; nothing is charged.
 */
export function createTranscription(deps: CallDeps, requestContext: RequestContext, input: TranscriptionInput): Promise<Transcription> {
  const check = () => checkTranscriptionRequest(input)
  return limited(deps, requestContext, 'chat', (limits, currentContext) =>
    transcribe(deps, currentContext, ofCaller(limits, check), {
      hear: ({ engine, call, audio, request }, signal) => engine.transcribe(call, audio, request.options, signal),
      convert: (response) => ({ text: response.text, response, subtitles: toSubtitles(response, input.responseFormat ?? 'json') }),
    }),
  )
}

function toSubtitles(response: ProtocolObject, format: TranscriptionFormat): string | null {
  if (format !== 'srt' && format !== 'vtt') return null
  const segments = readSegments(response)
  if (!segments) throw new KisError('engine_error', 'The engine returned a response without segments, which subtitles need.')
  return format === 'srt' ? toSrt(segments) : toVtt(segments)
}
