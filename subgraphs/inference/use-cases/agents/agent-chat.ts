import { isAbsent } from '../../../common/check.ts'
import { KisError, ModelNotFound } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { type AgentChat, protocolUsage, readAgentChat, toAnnotations, toFinishReason } from '../../domain/agents/chat-of-agent.ts'
import { quantitiesOfSteps, type RunOutcome, type RunStep } from '../../domain/agents/run.ts'
import { providerUsage, type Usage } from '../../domain/tokens/usage.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { noteUnhonored } from '../calls/admit-chat.ts'
import type { ChatCompletion } from '../calls/create-chat-completion.ts'
import type { ChatEvent } from '../calls/stream-chat-completion.ts'
import type { RequestContext, ServedDeps } from '../deps.ts'
import type { Replayable } from '../idempotency/once-for-key.ts'
import { fromJson } from '../runs/run-json.ts'
import type { FollowedEvent } from '../runs/run-log.ts'
import type { RunRecord } from '../tables.ts'
import type { RunInput } from './agent-runs.ts'
import { findVersion } from './agents.ts'
import { runAgent, toRunFailure } from './run-agent.ts'

/** A chat request whose model is an agent. */
interface SentAgentChat {
  readonly request: unknown
  readonly idempotencyKey?: string | null
}

/**
 * Answers a chat request with a run of an agent. The `id` of the response is the run's id. If the caller disconnects,
 * the run is cancelled, unless the request has an idempotency key.
 * @throws {KisError} `model_not_found`: the organization has no such agent.
 * @throws {KisError} the code of the run's error, when the run failed; the message names the run.
 * @throws {KisError} `invalid_request`: the request is invalid, or another caller cancelled the run.
 */
export async function completeByAgent(
  deps: ServedDeps,
  requestContext: RequestContext,
  sent: SentAgentChat,
): Promise<ChatCompletion & Replayable> {
  const { chat, warnings } = read(requestContext, sent, false)
  const run = await runAgent(deps.runs, requestContext, toRunInput(chat, sent)).catch((error) => {
    throw inChatWords(error, chat)
  })
  const { outcome, usage, cost } = readEnd(run)
  const { text, isRefusal } = outcome
  const message = {
    role: 'assistant',
    content: isRefusal ? null : text,
    refusal: isRefusal ? text : null,
    annotations: toAnnotations(outcome),
  }
  const response = {
    ...buildHead(run, chat, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: toFinishReason(outcome) }],
    usage: protocolUsage(usage.quantities),
  }
  const modelId = (await findVersion(deps, run.organizationId, run.agentId, run.agentVersion))?.modelId ?? chat.model
  return { response, warnings, modelId, usage, cost, rateLimits: readRateLimits(deps, requestContext), replayed: run.isReplayed }
}

/**
 * Answers like `completeByAgent`, as a stream. The stream sends the text of every model call as it arrives. A blank
 * line separates the texts of two calls, and comes before the text of a call that another process repeats. When the
 * answer has to match a schema, the stream sends only the matching answer, at the end. Nothing happens before the first
 * `next()`.
 */
export function streamByAgent(
  deps: ServedDeps,
  requestContext: RequestContext,
  sent: SentAgentChat,
): AsyncIterableIterator<ChatEvent & Replayable, undefined> {
  const stream = new AgentChatStream(deps, requestContext, sent)
  return endableIterator(
    () => stream.next(),
    () => stream.close(),
    requestContext.signal,
  )
}

class AgentChatStream {
  readonly #deps: ServedDeps
  readonly #requestContext: RequestContext
  readonly #sent: SentAgentChat
  #chat: AgentChat | undefined
  #run: RunRecord | undefined
  #events: AsyncIterableIterator<FollowedEvent, undefined> | undefined
  /** Sent with the first event only. */
  #first: Pick<ChatEvent, 'warnings' | 'rateLimits'> | undefined
  #isReplayed = false
  #isBuffered = false
  #isOver = false
  /** The text sent so far, and the offset in it at which the text of the last call begins. */
  #sentText = ''
  #lastCall = { number: 0, start: 0 }

  constructor(deps: ServedDeps, requestContext: RequestContext, sent: SentAgentChat) {
    this.#deps = deps
    this.#requestContext = requestContext
    this.#sent = sent
  }

  async next(): Promise<IteratorResult<ChatEvent & Replayable, undefined>> {
    if (this.#isOver) return { done: true, value: undefined }
    this.#events ??= await this.#start()
    for (;;) {
      const { done, value } = await this.#events.next()
      if (done) return { done: true, value: undefined }
      const event = value.event.type === 'done' ? await this.#end() : this.#toChatEvent(value)
      if (event) return { done: false, value: event }
    }
  }

  close(): void {
    if (this.#isOver) return
    this.#isOver = true
    void this.#events?.return?.()
    if (this.#run && isAbsent(this.#sent.idempotencyKey)) this.#deps.runs.cancel(this.#requestContext, this.#run._id).catch(() => undefined)
  }

  async #start(): Promise<AsyncIterableIterator<FollowedEvent, undefined>> {
    const { runs } = this.#deps
    const { chat, warnings } = read(this.#requestContext, this.#sent, true)
    const { run, isReplayed } = await runs.start(this.#requestContext, toRunInput(chat, this.#sent)).catch((error) => {
      throw inChatWords(error, chat)
    })
    const agent = await findVersion(this.#deps, run.organizationId, run.agentId, run.agentVersion)
    this.#chat = chat
    this.#run = run
    this.#isReplayed = isReplayed
    // The version of a deleted agent is gone; it may have had a schema.
    this.#isBuffered = agent === null || (chat.responseSchema ?? agent.responseSchema) !== null
    this.#first = { warnings, rateLimits: readRateLimits(this.#deps, this.#requestContext) }
    const events = runs.log.follow(run.organizationId, run._id, null)
    // The caller left during the awaits above.
    if (this.#isOver) {
      this.#isOver = false
      this.#events = events
      this.close()
    }
    return events
  }

  #toChatEvent({ event }: FollowedEvent): (ChatEvent & Replayable) | undefined {
    // The model is asked again. Sent text cannot be withdrawn, so the new text starts like that of another call.
    if (event.type === 'step_started' && event.number === this.#lastCall.number) this.#lastCall = { number: 0, start: 0 }
    if (event.type !== 'text_delta' || this.#isBuffered) return undefined
    let { text } = event
    if (event.number !== this.#lastCall.number) {
      if (this.#sentText !== '') text = `\n\n${text}`
      this.#lastCall = { number: event.number, start: this.#sentText.length + text.length - event.text.length }
    }
    return this.#createEvent([this.#chunk(this.#toDelta(text))])
  }

  /** @throws {KisError} the run failed or was cancelled, as in `readEnd`. */
  async #end(): Promise<ChatEvent & Replayable> {
    const run = await this.#deps.collections.runs.findOne({ _id: this.#run!._id })
    const { outcome, usage, cost } = readEnd(run ?? this.#run!)
    this.#isOver = true
    const { text, isRefusal } = outcome
    const start = this.#isBuffered ? 0 : this.#lastCall.start
    const chunks: ProtocolObject[] = []
    if (this.#isBuffered && !isRefusal) chunks.push(this.#chunk(this.#toDelta(text)))
    else if (this.#sentText === '' || isRefusal) chunks.push(this.#chunk({ ...this.#toDelta(''), ...(isRefusal && { refusal: text }) }))
    const annotations = isRefusal ? [] : toAnnotations(outcome, start)
    chunks.push(this.#chunk(annotations.length > 0 ? { annotations } : {}, toFinishReason(outcome)))
    chunks.push({ ...this.#head(), choices: [], usage: protocolUsage(usage.quantities) })
    return { ...this.#createEvent(chunks), usage, cost }
  }

  #toDelta(text: string): ProtocolObject {
    const isFirst = this.#first !== undefined
    this.#sentText += text
    return { ...(isFirst && { role: 'assistant' }), content: text }
  }

  #createEvent(chunks: readonly ProtocolObject[]): ChatEvent & Replayable {
    const { warnings = null, rateLimits = null } = this.#first ?? {}
    this.#first = undefined
    return { chunks, warnings, rateLimits, usage: null, cost: null, replayed: this.#isReplayed }
  }

  #chunk(delta: ProtocolObject, finish_reason: string | null = null): ProtocolObject {
    return { ...this.#head(), choices: [{ index: 0, delta, logprobs: null, finish_reason }] }
  }

  #head(): ProtocolObject {
    return buildHead(this.#run!, this.#chat!, 'chat.completion.chunk')
  }
}

function read({ caller }: RequestContext, { request }: SentAgentChat, isStream: boolean) {
  requireScope(caller, 'inference')
  const chat = readAgentChat(request, isStream)
  const unhonored = new Set<string>()
  for (const field of chat.unhonored) noteUnhonored(unhonored, field)
  return { chat, warnings: [...unhonored] }
}

function toRunInput({ model, messages, sampling, responseSchema }: AgentChat, { idempotencyKey }: SentAgentChat): RunInput {
  return { agentId: model, messages, sampling, responseSchema, idempotencyKey: idempotencyKey ?? null }
}

/** Rewrites an error about the agent as one about a model: a client of the chat protocol knows the agent as a model. */
function inChatWords(error: unknown, { model }: AgentChat): unknown {
  if (!(error instanceof KisError) || error.param !== 'input.agentId') return error
  if (error.code === 'not_found') return new ModelNotFound(model)
  return new KisError(error.code, error.message, { param: 'model', cause: error })
}

/**
 * Returns the answer of a run with its usage and its cost in nano-USD.
 * @throws {KisError} `invalid_request`: the run was cancelled.
 * @throws {KisError} the code of the run's error, when the run has no answer.
 */
function readEnd(run: RunRecord): { readonly outcome: RunOutcome; readonly usage: Usage; readonly cost: bigint } {
  if (run.status === 'cancelled') throw new KisError('invalid_request', `The run was cancelled. (The run is \`${run._id}\`.)`)
  if (run.outcome === null || run.cost === null) throw toRunFailure(run)
  const quantities = quantitiesOfSteps(fromJson<readonly RunStep[]>(run.steps))
  return { outcome: JSON.parse(run.outcome), usage: providerUsage(quantities), cost: BigInt(run.cost) }
}

function buildHead({ _id, startedAt }: RunRecord, { model }: AgentChat, object: string): ProtocolObject {
  return { id: _id, object, created: Math.floor(startedAt.getTime() / 1_000), model }
}

function readRateLimits({ limits }: ServedDeps, { caller }: RequestContext) {
  return limits.readState(requireScope(caller, 'inference'))
}
