import { refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { estimateTokens } from '../../domain/tokens/estimate-tokens.ts'
import { heardUsage, measureAudio } from '../../domain/transcription/audio-length.ts'
import type { TranscriptionRequest } from '../../domain/transcription/transcription-request.ts'
import type { AudioFile, EngineCall, ProtocolObject, TranscriptionEngine } from '../../ports/engines.ts'
import { type Admission, admit } from '../calls/admit.ts'
import type { LimitedCall } from '../calls/limited-call.ts'
import { type CallContext, getEnginePart, type HoldDeps, type RequestContext } from '../deps.ts'
import { billedCall } from '../money/billed-call.ts'

/** A file of speech, and the engine and model that transcribe it. */
export interface Speech {
  readonly engine: TranscriptionEngine
  readonly model: Model
  readonly call: EngineCall
  readonly audio: AudioFile
  readonly request: TranscriptionRequest
}

/** What every transcription reports at its end: the model that ran, the length of the audio and the charge. */
export interface Transcribed {
  readonly modelId: string
  readonly audioMilliseconds: number
  readonly cost: bigint
}

/** The caller, the checks and the start of a call. */
interface Beginning extends Pick<Admission<TranscriptionRequest>, 'scope' | 'modelParam' | 'check'> {
  /** Longer files are refused if their length is known. Absent: the limits of any file. */
  readonly longestMs?: number
  /** The last check before the hold. */
  start(principal: Principal): CallContext | Promise<CallContext>
}

/** Starts a call of a client, within the limits of its key. Audio has no tokens, so the call consumes one request. */
export function ofCaller(limits: LimitedCall, check: () => TranscriptionRequest): Beginning {
  return { scope: 'inference', modelParam: 'model', check, start: (principal) => limits.admit(principal, 0) }
}

/** Calls the engine and converts its response. */
interface Hearing<Value> {
  /** Returns the protocol's object with the text, as the engine sent it. */
  hear(speech: Speech, signal: AbortSignal): Promise<ProtocolObject>
  /**
   * Converts the response, which has `usage`.
   * @throws {KisError} `engine_error`: the response is unusable and free.
   */
  convert(response: ProtocolObject & { readonly text: string }): Value
}

/**
 * Admits the call, places a hold, transcribes the file and charges its length. The whole file is charged if the caller
 * disconnects or a limit or a deadline of the service ends the call, because the engine already has the file.
 * @throws {KisError} as `admit`.
 * @throws {KisError} `payload_too_large`: the file is longer than the call may be.
 * @throws {KisError} `unsupported_value`: the file is not audio in a supported format.
 * @throws {KisError} `engine_error`: the engine sent no usable response.
 * @throws {TooBusy} too many files of the organization wait to be read.
 */
export async function transcribe<Value extends object>(
  deps: HoldDeps,
  requestContext: RequestContext,
  { start, longestMs, ...admission }: Beginning,
  { hear, convert }: Hearing<Value>,
): Promise<Value & Transcribed> {
  const { principal, request, model } = admit(deps.catalog, requestContext.caller, {
    ...admission,
    kind: 'transcription',
  })
  const { bytes } = request
  const audio = await deps.audio.read(bytes, principal.organizationId, requestContext.signal)
  if (!audio) return refuse('unsupported_value', 'contentBase64', 'The file is not audio in flac, mp3, mp4, m4a, ogg, wav or webm.')
  if (longestMs !== undefined && (audio.durationMs ?? 0) > longestMs)
    refuse('payload_too_large', 'contentBase64', `The file is longer than ${longestMs / 3_600_000} hours. Split it into shorter files.`)
  const length = measureAudio(audio, bytes.length, estimateTokens(request.options.prompt ?? ''), model)

  const engine = getEnginePart(deps, model, 'transcription')
  const call = { engineModel: model.engineModel, requestId: requestContext.requestId }
  const context = await start(principal)
  let used = length.own
  return billedCall(
    deps,
    context,
    { operation: 'transcription', model, ceiling: length.ceiling, atLeast: length.own.quantities },
    () => used,
    async (signal) => {
      const result = await hear({ engine, model, call, audio: { bytes, format: audio.format }, request }, signal)
      if (typeof result.text !== 'string') throw new KisError('engine_error', 'The engine returned a response without text.')
      const usage = heardUsage(result, length, model)
      used = usage
      const audioMilliseconds = usage.quantities.audioMilliseconds || length.own.quantities.audioMilliseconds
      const duration = { type: 'duration', seconds: Math.ceil(audioMilliseconds / 1_000) }
      const response = { ...result, text: result.text, usage: result.usage ?? duration }
      return { value: { ...convert(response), modelId: model.id, audioMilliseconds }, usage }
    },
  )
}
