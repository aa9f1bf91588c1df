import { refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { eventsOfAnswer, TRANSCRIPT_DONE } from '../../domain/transcription/transcript-events.ts'
import {
  checkTranscriptionRequest,
  type TranscriptionInput,
  type TranscriptionRequest,
} from '../../domain/transcription/transcription-request.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { AskContext, CallDeps } from '../deps.ts'
import type { BilledEvent } from '../idempotency/stream-once-for-key.ts'
import { streamEvents } from './given-events.ts'
import { limited } from './limited-call.ts'
import { type Speech, transcribe } from './transcribe.ts'

/** What arrived together. The last event has `transcript.text.done` alone, the length charged and the cost. */
export interface TranscriptionEvent extends BilledEvent {
  /** The protocol's events whole. */
  readonly events: readonly ProtocolObject[]
  readonly audioMilliseconds: number | null
}

/**
 * Writes down what is said in a file and streams it: as the engine gives it where the model's engine streams, else in
 * one piece. Nothing happens before the first `next()`; a failure before the first event rejects it. `return()` ends
 * the engine, and the whole file is charged in the background.
 */
export function streamTranscription(
  deps: CallDeps,
  ask: AskContext,
  input: TranscriptionInput,
): AsyncIterableIterator<TranscriptionEvent, undefined> {
  return streamEvents<TranscriptionEvent>(ask.signal, async (give, signal) => {
    let isFirst = true
    const { rateLimits, ...last } = await limited(deps, { ...ask, signal }, 'chat', (limits, asking) =>
      transcribe(deps, asking, limits, () => checkStreamed(input), {
        async hear(speech, until) {
          for await (const events of streamAnswer(speech, until)) {
            const done = events.find(({ type }) => type === TRANSCRIPT_DONE)
            const before = events.filter((event) => event !== done)
            if (before.length > 0) {
              const told = { rateLimits: isFirst ? limits.rateLimits : null, audioMilliseconds: null, cost: null }
              isFirst = false
              await give({ events: before, ...told }, until)
            }
            if (done) return done
          }
          until.throwIfAborted()
          throw new KisError('engine_error', `The engine \`${speech.model.engine}\` broke off its answer.`)
        },
        tell: (done) => ({ events: [done] }),
      }),
    )
    return { ...last, rateLimits: isFirst ? rateLimits : null }
  })
}

function checkStreamed(input: TranscriptionInput): TranscriptionRequest {
  const { responseFormat } = input
  if (responseFormat && responseFormat !== 'json' && responseFormat !== 'diarized_json')
    refuse(
      'invalid_request',
      'responseFormat',
      `A stream has the protocol's events, which are there for \`json\` and \`diarized_json\` only.`,
    )
  return checkTranscriptionRequest(input)
}

async function* streamAnswer(
  { engine, model, call, sound, request }: Speech,
  signal: AbortSignal,
): AsyncGenerator<readonly ProtocolObject[]> {
  if (model.supports.has('streaming')) return yield* await engine.stream(call, sound, request.ask, signal)
  const { before, done } = eventsOfAnswer(await engine.transcribe(call, sound, request.ask, signal))
  yield before
  yield [done]
}
