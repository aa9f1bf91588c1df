import { refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { eventsOfResponse, TRANSCRIPT_DONE } from '../../domain/transcription/transcript-events.ts'
import {
  checkTranscriptionRequest,
  type TranscriptionInput,
  type TranscriptionRequest,
} from '../../domain/transcription/transcription-request.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { limited } from '../calls/limited-call.ts'
import { streamEvents } from '../calls/push-stream.ts'
import type { CallDeps, RequestContext } from '../deps.ts'
import type { BilledEvent } from '../idempotency/stream-once-for-key.ts'
import { ofCaller, type Speech, transcribe } from './transcribe.ts'

/** The events that arrived together. The last has only `transcript.text.done`, the charged length and the cost. */
export interface TranscriptionEvent extends BilledEvent {
  /** Whole events of the protocol. */
  readonly events: readonly ProtocolObject[]
  readonly audioMilliseconds: number | null
}

/**
 * Transcribes the speech in a file as a stream. If the engine of the model streams, events arrive as the engine sends
 * them; otherwise the text arrives in one piece. Nothing happens before the first `next()`, which rejects on a failure
 * before the first event. `return()` stops the engine, and the whole file is charged in the background.
 */
export function streamTranscription(
  deps: CallDeps,
  requestContext: RequestContext,
  input: TranscriptionInput,
): AsyncIterableIterator<TranscriptionEvent, undefined> {
  return streamEvents<TranscriptionEvent>(requestContext.signal, async (push, signal) => {
    let isFirst = true
    const { rateLimits, ...last } = await limited(deps, { ...requestContext, signal }, 'chat', (limits, currentContext) =>
      transcribe(
        deps,
        currentContext,
        ofCaller(limits, () => checkStreamed(input)),
        {
          async hear(speech, until) {
            for await (const events of speechEvents(speech, until)) {
              const done = events.find(({ type }) => type === TRANSCRIPT_DONE)
              const before = events.filter((event) => event !== done)
              if (before.length > 0) {
                const fields = { rateLimits: isFirst ? limits.rateLimits : null, audioMilliseconds: null, cost: null }
                isFirst = false
                await push({ events: before, ...fields }, until)
              }
              if (done) return done
            }
            until.throwIfAborted()
            throw new KisError('engine_error', `The engine \`${speech.model.engine}\` broke off its response.`)
          },
          convert: (done) => ({ events: [done] }),
        },
      ),
    )
    return { ...last, rateLimits: isFirst ? rateLimits : null }
  })
}

function checkStreamed(input: TranscriptionInput): TranscriptionRequest {
  const { responseFormat } = input
  if (responseFormat && responseFormat !== 'json' && responseFormat !== 'diarized_json')
    refuse('invalid_request', 'responseFormat', `A stream has the protocol's events, which exist for \`json\` and \`diarized_json\` only.`)
  return checkTranscriptionRequest(input)
}

async function* speechEvents(
  { engine, model, call, audio, request }: Speech,
  signal: AbortSignal,
): AsyncGenerator<readonly ProtocolObject[]> {
  if (model.supports.has('streaming')) return yield* await engine.stream(call, audio, request.options, signal)
  const { before, done } = eventsOfResponse(await engine.transcribe(call, audio, request.options, signal))
  yield before
  yield [done]
}
