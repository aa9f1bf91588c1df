import { KisError } from '../../../common/errors.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { Model } from '../../domain/catalog.ts'
import { requestFor } from '../../domain/chat/chat-request.ts'
import { readChoices } from '../../domain/chat/chat-response.ts'
import { ChunkCompleter } from '../../domain/chat/chunk-completer.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { StreamMeter } from '../../domain/money/stream-meter.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import { NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { withDeadline } from '../deadline.ts'
import { type CallDeps, getEngine, getEnginePart, type RequestContext } from '../deps.ts'
import type { BilledEvent } from '../idempotency/stream-once-for-key.ts'
import { callTookTooLong, MAX_CALL_MS } from '../money/billed-call.ts'
import { type OpenHold, openHold } from '../money/hold.ts'
import { type AdmittedChat, admitChat, namesFor, toChatCall } from './admit-chat.ts'
import { LimitedCall } from './limited-call.ts'
import { byRulesInForce } from './principals.ts'
import { withFallbacks } from './with-fallbacks.ts'

/** The chunks that arrived together. The last event has the usage chunk, the usage and the cost. */
export interface ChatEvent extends BilledEvent {
  readonly chunks: readonly ProtocolObject[]
  /** With the first event: the fields that could not be honored, for example `seed_not_honored`. */
  readonly warnings: readonly string[] | null
  readonly usage: Usage | null
  /** With the last event: the model that replied. */
  readonly modelId?: string
}

/** Most chunks without a choice before the response. Vendors send reports of their filters, one or two. */
const MAX_CHUNKS_BEFORE = 1_000

/**
 * Streams the response to one chat request. Nothing happens before the first `next()`, which admits the call, holds
 * money and calls the engine; it rejects if one of them fails. `return()` stops the engine at once, and the output so
 * far is charged in the background.
 */
export function streamChatCompletion(
  deps: CallDeps,
  requestContext: RequestContext,
  value: unknown,
): AsyncIterableIterator<ChatEvent, undefined> {
  const stream = new ChatStream(deps, requestContext, value)
  return endableIterator(
    () => stream.next(),
    () => stream.close(),
    requestContext.signal,
  )
}

type Piece = IteratorResult<readonly ProtocolObject[], undefined>
type Step = IteratorResult<ChatEvent, undefined>

const DONE = { done: true, value: undefined } as const

/** An engine that was called, and the money that is held for the call. */
interface Attempt {
  readonly hold: OpenHold
  readonly meter: StreamMeter
}

interface Answering extends Attempt {
  readonly model: Model
  /** The charge of earlier attempts, in nano-USD. */
  readonly chargedBefore: bigint
  /** Null once the warnings are sent. */
  warnings: readonly string[] | null
  readonly chunks: AsyncIterator<readonly ProtocolObject[], undefined>
  readonly completer: ChunkCompleter
}

interface Begun {
  readonly answering: Answering
  /** The first piece. It was awaited while another model could still reply instead. */
  readonly first: Piece
}

class ChatStream {
  readonly #deps: CallDeps
  readonly #requestContext: RequestContext
  /** Aborts when the caller disconnects, or this process leaves the call to another. */
  readonly #cut: AbortSignal
  readonly #value: unknown
  /** Stops the engine when the caller disconnects or the call takes too long. */
  readonly #stop = new AbortController()
  #deadline: NodeJS.Timeout | undefined
  #isLate = false
  #call: LimitedCall | undefined
  #attempt: Attempt | undefined
  #answering: Answering | undefined
  #isOver = false

  constructor(deps: CallDeps, requestContext: RequestContext, value: unknown) {
    this.#deps = deps
    this.#requestContext = { ...requestContext, signal: this.#stop.signal }
    this.#cut = requestContext.signal
    this.#value = value
  }

  /** The first step starts the call. Each of the others costs one promise. */
  next(): Promise<Step> {
    return this.#answering ? this.#answering.chunks.next().then(this.#took, this.#failed) : this.#firstStep()
  }

  async #firstStep(): Promise<Step> {
    let begun: Begun
    try {
      begun = await this.#start()
    } catch (error) {
      return this.#failed(error)
    }
    this.#answering = begun.answering
    if (!this.#isOver) return this.#took(begun.first)
    // The caller disconnected while the response started.
    begun.answering.chunks.return?.()
    await this.#resolveFailed(null)
    return DONE
  }

  readonly #took = (piece: Piece): Step | Promise<Step> => {
    if (this.#isOver) return DONE
    const answering = this.#answering!
    if (piece.done) return this.#isLate ? this.#failed(callTookTooLong()) : this.#last(answering)
    try {
      const event = this.#toEvent(piece.value, answering)
      return event ? { done: false, value: event } : this.next()
    } catch (error) {
      return this.#failed(error)
    }
  }

  async #last(answering: Answering): Promise<Step> {
    this.#end()
    const { hold, meter, completer, model, chargedBefore } = answering
    const usage = meter.usage(!meter.isSpent)
    if (meter.isZeroReported) this.#deps.zeroUsage.note(model)
    const last = { chunks: completer.end(usage, meter.isSpent), ...this.#firstEventFields(answering), usage, modelId: model.id }
    try {
      await this.#requestContext.record?.completed(usage, last)
    } catch (error) {
      await hold.resolve(error instanceof StoppedByLimit ? usage : null).catch(() => undefined)
      throw error
    }
    return { done: false, value: { ...last, cost: chargedBefore + (await hold.resolve(usage)) } }
  }

  readonly #failed = async (error: unknown): Promise<never> => {
    this.#end()
    // The response that is refused here is still arriving.
    this.#answering?.chunks.return?.()
    await this.#resolveFailed(error)
    const failure = this.#isLate ? callTookTooLong() : error
    throw this.#call?.failed(failure) ?? failure
  }

  /** Stops the engine, because the caller needs no more. */
  close(): void {
    if (this.#isOver) return
    this.#end()
    this.#stop.abort()
    // Before the response has started, the end of the attempt shows whether its engine was called.
    if (!this.#answering) return
    this.#answering.chunks.return?.()
    void this.#resolveFailed(null)
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#deadline)
    this.#call?.release()
  }

  #start(): Promise<Begun> {
    this.#call = new LimitedCall(this.#deps, this.#requestContext, 'chat')
    this.#deadline = setTimeout(() => {
      this.#isLate = true
      this.#stop.abort()
    }, MAX_CALL_MS)
    return byRulesInForce(this.#deps, this.#requestContext, async (currentContext) => {
      const admitted = await admitChat(this.#deps, currentContext, this.#call!, this.#value, true)
      return withFallbacks(this.#deps, admitted.context, admitted.models, (model, _endsAt, charged) => this.#try(model, admitted, charged))
    })
  }

  async #try(
    model: Model,
    { context, requestWithImages, inputTokensFor, termsFor, warningsFor }: AdmittedChat,
    chargedBefore: bigint,
  ): Promise<Begun> {
    const { clock } = this.#deps
    const terms = termsFor(model)
    const hold = await openHold(this.#deps, context, terms)
    const meter = new StreamMeter(inputTokensFor(model), terms.ceiling.outputTokens, clock.now().getTime())
    this.#attempt = { hold, meter }
    try {
      const request = await requestWithImages(model, hold.authorize)
      const warnings = warningsFor(model)
      const call = toChatCall(model, context, warnings)
      const chat = getEnginePart(this.#deps, model, 'chat')
      const { firstByteMs } = getEngine(this.#deps, model)
      const { chunks, first } = await this.#begun(firstByteMs, model, (signal) =>
        chat.stream(call, requestFor(model, request, call.warn), signal),
      )
      const completer = new ChunkCompleter(namesFor(this.#deps, model))
      return { answering: { model, chargedBefore, hold, meter, chunks, completer, warnings: [...warnings] }, first }
    } catch (error) {
      const wasSent = !(error instanceof NeverSent)
      await this.#resolveFailed(error)
      throw wasSent ? error : error.cause
    }
  }

  /**
   * Returns the stream with its first piece of a response.
   * @throws {StoppedByLimit} `engine_timeout`: the engine sent none within `ms` milliseconds and is stopped.
   * @throws {StoppedByLimit} `engine_error`: the engine sent too many chunks without one.
   * @throws {KisError} `engine_error`: the stream ended without one.
   */
  async #begun(
    ms: number,
    { engine }: Model,
    open: (signal: AbortSignal) => Promise<Answering['chunks']>,
  ): Promise<Pick<Answering, 'chunks'> & Pick<Begun, 'first'>> {
    const stop = new AbortController()
    const onStop = () => stop.abort(this.#stop.signal.reason)
    if (this.#stop.signal.aborted) onStop()
    this.#stop.signal.addEventListener('abort', onStop, { once: true })
    const tooLate = () =>
      new StoppedByLimit('engine_timeout', `The engine \`${engine}\` did not begin its response within ${ms / 1_000} s.`)
    return withDeadline(ms, tooLate, null, async (late) => {
      late.addEventListener('abort', () => stop.abort(late.reason), { once: true })
      const chunks = await open(stop.signal)
      const before: ProtocolObject[] = []
      for (;;) {
        const first = await chunks.next()
        // A stopped stream looks like one that has ended.
        late.throwIfAborted()
        // Chunks with filter results or usage have no choice and are not a response.
        if (first.done) throw new KisError('engine_error', `The engine \`${engine}\` returned no response.`)
        for (const chunk of first.value) before.push(chunk)
        if (before.length > MAX_CHUNKS_BEFORE) {
          const message = `The engine \`${engine}\` sent ${MAX_CHUNKS_BEFORE} chunks without an answer.`
          throw new StoppedByLimit('engine_error', message, { shouldRetry: false })
        }
        if (first.value.some((chunk) => readChoices(chunk).length > 0)) return { chunks, first: { done: false, value: before } }
      }
    })
  }

  /** Returns undefined for chunks that the caller must not see before the end. */
  #toEvent(received: readonly ProtocolObject[], answering: Answering): ChatEvent | undefined {
    const { hold, meter, completer } = answering
    const paid = meter.note(received)
    if (meter.claimCheckpoint(this.#deps.clock.now().getTime())) hold.checkpoint(meter.usage().quantities)
    // The next `chunks.next()` then returns the end.
    if (meter.isSpent) answering.chunks.return?.()
    const chunks = completer.write(paid)
    if (chunks.length === 0) return undefined
    return { chunks, ...this.#firstEventFields(answering), usage: null, cost: null }
  }

  #firstEventFields(answering: Answering): Pick<ChatEvent, 'warnings' | 'rateLimits'> {
    const { warnings } = answering
    answering.warnings = null
    return { warnings, rateLimits: warnings && (this.#call?.rateLimits ?? null) }
  }

  /**
   * Resolves the hold of an attempt that did not end with a whole response. `error` is null when the caller has
   * disconnected. If the caller, or a limit or a deadline of the service, ended the call, the output so far is charged,
   * unless another process repeats the call. A vendor's failure without usage is free, and so is an engine that was not
   * called.
   */
  async #resolveFailed(error: unknown): Promise<void> {
    if (!this.#attempt) return
    const { hold, meter } = this.#attempt
    const isLeft = this.#stop.signal.aborted && !(this.#cut.aborted && this.#requestContext.record?.isFreeWhenCut)
    const isStopped = this.#isLate || error instanceof StoppedByLimit
    const isFailed = !this.#stop.signal.aborted && meter.isReported
    const isCharged = !(error instanceof NeverSent) && (isStopped || isLeft || isFailed)
    const charged = await hold.resolve(isCharged ? meter.usage() : null).catch(() => 0n)
    if (error instanceof StoppedByLimit) error.charged = charged
  }
}
