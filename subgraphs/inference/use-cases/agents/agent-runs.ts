import { ERRORS } from '../../../../schema/errors.ts'
import { isAbsent, refuse, textAt } from '../../../common/check.ts'
import { isAbort, KisError, NotFound, TooBusy } from '../../../common/errors.ts'
import { tell } from '../../../common/events/event-log.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { DuplicateKey, type Update } from '../../../common/ports/document-store.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import { SCHEMA_PARAM } from '../../domain/agents/chat-of-agent.ts'
import type { AgentDefinition } from '../../domain/agents/definition.ts'
import { readDefinition } from '../../domain/agents/definition.ts'
import type { RunError, RunEvent, RunOutcome, RunStep } from '../../domain/agents/run.ts'
import { checkMessages } from '../../domain/chat/chat-messages.ts'
import { checkIdempotencyKey, requestDigest, sha256 } from '../../domain/idempotency-key.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { byRulesInForce } from '../calls/principals.ts'
import type { AskContext, CallContext, Deps } from '../deps.ts'
import { forgetDeletedAgents } from '../forget.ts'
import { reused } from '../idempotency/keyed-calls.ts'
import { type OpenRunHold, openRunHold } from '../money/hold.ts'
import { endOf } from '../runs/run-ends.ts'
import { type RunEventWriter, RunLog, toJson } from '../runs/run-log.ts'
import type { AgentRecord, RunRecord } from '../tables.ts'
import { runAgentLoop } from './agent-loop.ts'
import { getAgent, modelOf } from './agents.ts'
import { keptFormOf } from './kept-messages.ts'
import { checkSchemas } from './schema-answers.ts'
import { addToThread, readThread, removeExpiredThreads } from './threads.ts'

/** Runs of one process at once: each holds its conversation in memory. One organization has at most half of them. */
const MAX_RUNS = 500
/** When the next of an organization's runs ends nobody knows; most take a few seconds. */
const FULL_RETRY_MS = 2_000
/** A run that takes longer has gone astray. */
const MAX_RUN_MS = 900_000
/** A run whose process says nothing for this long has lost it. */
const LEASE_MS = 30_000
const RENEW_MS = 10_000
/** How soon a run hears that it is cancelled through another process. */
const LOOK_MS = 1_000
/** How often runs are looked for that have lost their process, or are to be forgotten. */
const SWEEP_MS = 15_000
const MAX_SWEPT = 100
/** Runs and their events are kept for so long: 30 days. */
const KEPT_MS = 30 * 86_400_000

export interface RunInput {
  /** The agent's id, or `agent/<code>`. */
  readonly agentId: string
  /** The question as text. */
  readonly input?: string | null
  /** Instead of it, a conversation in messages of the chat protocol whose last is the question. */
  readonly messages?: readonly unknown[] | null
  /** A conversation that the service keeps: its messages come first, and the question and the answer are added to it. */
  readonly threadId?: string | null
  /** Keeps the conversation in a new thread. */
  readonly keepThread?: boolean | null
  /** At most what the agent allows, in nano-USD. */
  readonly maxCost?: bigint | null
  /** A repeat with the same key gives the same run, for as long as runs are kept. */
  readonly idempotencyKey?: string | null
  /** Fields of the chat protocol for the calls of the model, before those of the agent. */
  readonly sampling?: ProtocolObject
  /** In place of the agent's, of a request of the chat protocol. */
  readonly responseSchema?: ProtocolObject | null
}

export interface StartedRun {
  readonly run: RunRecord
  /** The run as it has ended. Never rejects. */
  readonly ended: Promise<RunRecord>
  /** It was started before, with the same idempotency key. */
  readonly isReplayed: boolean
}

interface Running {
  readonly run: RunRecord
  readonly agent: AgentDefinition
  readonly messages: readonly ProtocolObject[]
  readonly newMessages: readonly ProtocolObject[]
  /** It makes its thread; a thread that is gone when it ends was deleted. */
  readonly beginsThread: boolean
  readonly context: CallContext & { readonly runHoldId: string }
  readonly hold: OpenRunHold
  readonly writer: RunEventWriter
  readonly stop: AbortController
  /** Gives its place back. */
  readonly leave: () => void
  readonly steps: RunStep[]
  /** Charges of its calls that are being made. */
  readonly charges: Promise<bigint>[]
}

/** Runs of agents. A run that has begun goes on until its end, its caps or its cancellation, whoever listens. */
export class AgentRuns implements AsyncDisposable {
  readonly log: RunLog
  readonly #deps: Deps
  readonly #running = new Map<string, Running>()
  readonly #places = new FairPlaces(MAX_RUNS)
  readonly #stopping = new AbortController()
  /** Undefined while the store has not opened: a stop does not wait for that. */
  #background: Promise<unknown> | undefined

  /** Looks after runs once the store is `opened`. */
  constructor(deps: Deps, opened: Promise<unknown>) {
    this.#deps = deps
    this.log = new RunLog(deps, 'runs')
    opened.then(
      () => {
        this.#background = Promise.all([this.#keepRenewing(), this.#keepLooking(), this.#keepSweeping()])
      },
      // The start ends with it.
      () => undefined,
    )
  }

  /** Checks, reserves the most that the run may cost, and begins. @throws {KisError} nothing has begun, and nothing is held. */
  start(ask: AskContext, input: RunInput): Promise<StartedRun> {
    return byRulesInForce(this.#deps, ask, (asking) => this.#start(asking, input))
  }

  async #start(ask: AskContext, input: RunInput): Promise<StartedRun> {
    const deps = this.#deps
    const principal = requireScope(ask.caller, 'agents')
    const keyed = keyOf(principal, input)
    const earlier = keyed && (await this.#earlier(keyed))
    if (earlier) return earlier
    const agent = await getAgent(deps, principal, input.agentId, 'input.agentId')
    const definition = definitionFor(agent, input)
    modelOf(deps, { caller: principal }, definition.modelId, 'input.agentId')
    const newMessages = messagesOf(input)
    if (input.responseSchema) await checkSchemas(deps, principal, [{ schema: input.responseSchema, param: SCHEMA_PARAM }], ask.signal)
    const keptMessages = keptFormOf(newMessages)
    const thread = input.threadId == null ? null : await readThread(deps, principal, input.threadId, agent._id)
    if (this.#stopping.signal.aborted) throw new TooBusy('This process is stopping and starts no run.')
    const leave = this.#takePlace(principal)
    try {
      return await this.#begin(ask, input, { principal, keyed, agent, definition, newMessages, keptMessages, thread }, leave)
    } catch (error) {
      leave()
      throw error
    }
  }

  /** @throws {KisError} the organization, or all together, have as many as they may. */
  #takePlace({ organizationId }: Principal): () => void {
    const leave = this.#places.tryTake(organizationId)
    if (leave) return leave
    const own = this.#places.heldBy(organizationId)
    if (own === 0) throw new TooBusy('The service runs as many runs as it can.')
    const text = `Rate limit reached: the organization has ${own} runs of agents under way, as many as it may have at the moment.`
    throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
  }

  /** `leave` gives the run's place back: its end calls it. @throws {KisError} nothing has begun, and the place is the caller's to give back. */
  async #begin(
    ask: AskContext,
    input: RunInput,
    { principal, keyed, agent, definition, newMessages, keptMessages, thread }: CheckedStart,
    leave: () => void,
  ): Promise<StartedRun> {
    const deps = this.#deps
    const now = deps.clock.now()
    const runId = deps.ids('run')
    const stop = new AbortController()
    const charges: Promise<bigint>[] = []
    const context: CallContext = {
      caller: { ...principal, isRun: true },
      requestId: runId,
      signal: stop.signal,
      charging: (cost) => charges.push(cost),
    }
    const maxCost = least(input.maxCost ?? definition.maxCost, definition.maxCost)
    const hold = await openRunHold(deps, { ...context, signal: ask.signal }, maxCost, false)
    const run: RunRecord = {
      _id: runId,
      organizationId: principal.organizationId,
      apiKeyId: principal.apiKeyId,
      ...keyed,
      agentId: agent._id,
      agentVersion: agent.version,
      threadId: input.threadId ?? (input.keepThread ? deps.ids('thr') : null),
      status: 'running',
      input: JSON.stringify(keptMessages),
      outcome: null,
      steps: '[]',
      cost: null,
      error: null,
      isCancelled: false,
      outbox: [],
      leaseUntil: new Date(now.getTime() + LEASE_MS),
      startedAt: now,
      endedAt: null,
      expiresAt: new Date(now.getTime() + KEPT_MS),
    }
    try {
      await deps.collections.runs.insertOne(run)
    } catch (error) {
      await hold.end().catch(() => undefined)
      const first = error instanceof DuplicateKey && keyed ? await this.#earlier(keyed) : null
      if (!first) throw error
      leave()
      return first
    }
    const running: Running = {
      run,
      agent: definition,
      messages: [...(thread?.messages ?? []), ...newMessages],
      newMessages: keptMessages,
      beginsThread: thread === null,
      context: { ...context, runHoldId: hold.id },
      hold,
      writer: this.log.writerOf(run.organizationId, runId),
      stop,
      leave,
      steps: [],
      charges,
    }
    this.#running.set(runId, running)
    return { run, ended: deps.background.track(this.#work(running)), isReplayed: false }
  }

  /** The run that was started with the key. @throws {KisError} `idempotency_conflict`: with another request. */
  async #earlier({ key, digest }: Keyed): Promise<StartedRun | null> {
    const run = await this.#deps.collections.runs.findOne({ key })
    if (!run) return null
    if (run.digest !== digest) throw reused()
    const isCharged = run.cost !== '0' && run.cost !== null
    if (run.error && !isCharged && ERRORS[run.error.code].retry) {
      // Nothing was charged, or the process has gone, and another try may do better: the key is free.
      await this.#deps.collections.runs.findOneAndUpdate({ _id: run._id, key }, { $unset: { key: '', digest: '' } })
      return null
    }
    return { run, ended: this.#endOf(run), isReplayed: true }
  }

  /** Of a run that may be another process's. */
  async #endOf(run: RunRecord): Promise<RunRecord> {
    try {
      if (run.status === 'running') for await (const _ of this.log.follow(run.organizationId, run._id, null));
      return (await this.#deps.collections.runs.findOne({ _id: run._id })) ?? run
    } catch (error) {
      this.#deps.log.warn({ err: error, runId: run._id }, 'a run could not be followed to its end')
      return run
    }
  }

  /** Ends the run soon, wherever it runs; one that has ended stays as it is. @throws {NotFound} */
  async cancel({ caller }: AskContext, runId: string): Promise<RunRecord> {
    const { organizationId } = requireScope(caller, 'agents')
    const run = await this.#deps.collections.runs.findOneAndUpdate({ _id: runId, organizationId }, { $set: { isCancelled: true } })
    if (!run) throw new NotFound('run', runId, 'id')
    this.#running.get(runId)?.stop.abort(CANCELLED)
    return run
  }

  /** Takes a run that has ended out of the store, with its events; its idempotency key is free. @throws {NotFound} @throws {KisError} `in_use`: it is under way. */
  async delete({ caller }: AskContext, runId: string): Promise<void> {
    const { organizationId } = requireScope(caller, 'agents')
    const run = await this.#deps.collections.runs.findOne({ _id: runId, organizationId })
    if (!run) throw new NotFound('run', runId, 'id')
    if (run.status === 'running') throw underWay()
    // Its end is told before it is forgotten.
    await this.#deps.runEnds.drain(organizationId)
    await this.#forget(runId)
  }

  async #forget(runId: string): Promise<void> {
    const { runEvents, runs } = this.#deps.collections
    while ((await runEvents.deleteMany({ runId })) > 0);
    await runs.findOneAndDelete({ _id: runId })
  }

  /** Runs that are under way are ended, and say so. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    for (const { stop } of this.#running.values())
      stop.abort(new KisError('service_unavailable', 'The service is stopping; the run can be started again.'))
    await this.#background
  }

  async #work(running: Running): Promise<RunRecord> {
    const { run, agent, messages, context, writer, stop, steps } = running
    const deadline = setTimeout(() => stop.abort(tooLong()), MAX_RUN_MS)
    const emit = (event: RunEvent) => {
      if (event.type === 'usage') steps.push(event.step)
      writer.write(event)
    }
    let outcome: RunOutcome | undefined
    let failure: unknown
    try {
      emit({ type: 'run_started', agentVersion: run.agentVersion })
      // A follower knows the run by its first event.
      await writer.flushed()
      const model = modelOf(this.#deps, context, agent.modelId, 'input.agentId')
      outcome = await runAgentLoop(this.#deps, { agent, model, messages, context, emit })
    } catch (error) {
      failure = stop.signal.aborted ? stop.signal.reason : error
      stop.abort()
    }
    clearTimeout(deadline)
    return this.#end(running, outcome, failure)
  }

  /** Charges, then records, then tells. What fails here is found by the sweep of some process. */
  async #end(running: Running, outcome: RunOutcome | undefined, failure: unknown): Promise<RunRecord> {
    const { run, hold, writer, steps, charges } = running
    const { log, clock } = this.#deps
    const status = outcome ? 'completed' : failure === CANCELLED ? 'cancelled' : 'failed'
    const error = outcome || failure === CANCELLED ? null : this.#errorOf(failure, run)
    try {
      await Promise.allSettled(charges)
      const cost = await hold.end()
      const fields = {
        status,
        outcome: outcome ? JSON.stringify(outcome) : null,
        steps: toJson(withRest(steps, cost)),
        cost: String(cost),
        error,
        endedAt: clock.now(),
      } as const
      if (outcome && run.threadId) await addToThread(this.#deps, running, outcome.text)
      const ended = await this.#deps.collections.runs.findOneAndUpdate({ _id: run._id, status: 'running' }, withEnd(run, fields))
      this.#deps.runEnds.kick(run.organizationId)
      writer.write({ type: 'done', status })
      await writer.flushed()
      return ended ?? run
    } catch (cause) {
      log.error({ err: cause, runId: run._id }, 'a run has ended and could not be recorded')
      return run
    } finally {
      this.#running.delete(run._id)
      running.leave()
    }
  }

  #errorOf(failure: unknown, { _id: runId }: RunRecord): RunError {
    if (failure instanceof KisError) return { code: failure.code, message: failure.message }
    if (isAbort(failure)) return { code: 'service_unavailable', message: 'The run was ended.' }
    this.#deps.log.error({ err: failure, runId }, 'defect in a run')
    return { code: 'internal', message: 'The service failed to run the agent.' }
  }

  async #keepRenewing(): Promise<void> {
    await this.#every(RENEW_MS, async () => {
      for (const { run, stop } of this.#running.values()) {
        const leaseUntil = new Date(this.#deps.clock.now().getTime() + LEASE_MS)
        const renewed = await this.#deps.collections.runs.findOneAndUpdate({ _id: run._id, status: 'running' }, { $set: { leaseUntil } })
        if (!renewed) stop.abort(CANCELLED)
      }
    })
  }

  /** Who cancels a run that another process works on writes it into the run. */
  async #keepLooking(): Promise<void> {
    await this.#every(LOOK_MS, async () => {
      const ids = [...this.#running.keys()]
      if (ids.length === 0) return
      const runs = await this.#deps.collections.runs.find({ _id: { $in: ids } }, { limit: ids.length })
      for (const { _id, isCancelled } of runs) if (isCancelled) this.#running.get(_id)?.stop.abort(CANCELLED)
    })
  }

  async #keepSweeping(): Promise<void> {
    await this.#every(SWEEP_MS, async () => {
      const { collections, clock } = this.#deps
      const now = clock.now()
      for (const run of await collections.runs.find({ leaseUntil: { $lt: now } }, { sort: { leaseUntil: 1 }, limit: MAX_SWEPT })) {
        const error = { code: 'service_unavailable', message: 'The process that ran it has gone.' } as const
        const { _id, organizationId } = run
        await collections.runs.findOneAndUpdate(
          { _id, status: 'running', leaseUntil: { $lt: now } },
          withEnd(run, { status: 'failed', steps: toJson(await this.#stepsTold(_id)), cost: null, error, endedAt: now }),
        )
        await this.log.append(organizationId, _id, { type: 'done', status: 'failed' })
      }
      await this.#deps.runEnds.sweep()
      for (const { _id } of await collections.runs.find({ expiresAt: { $lt: now } }, { sort: { expiresAt: 1 }, limit: MAX_SWEPT })) {
        await this.#forget(_id)
      }
      await removeExpiredThreads(this.#deps)
      await forgetDeletedAgents(this.#deps)
    })
  }

  /** The receipt of a run that can tell no more, as far as it has told it. */
  async #stepsTold(runId: string): Promise<readonly RunStep[]> {
    const steps: RunStep[] = []
    for await (const event of this.log.written(runId)) if (event.type === 'usage') steps.push(event.step)
    return steps
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await clock.sleep(ms, signal).catch(() => undefined)
      if (signal.aborted) return
      await work().catch((error) => log.warn({ err: error }, 'runs could not be looked after'))
    }
  }
}

/** A start that nothing is wrong with. */
interface CheckedStart {
  readonly principal: Principal
  readonly keyed: Keyed | null
  readonly agent: AgentRecord
  readonly definition: AgentDefinition
  readonly newMessages: readonly ProtocolObject[]
  readonly keptMessages: ReturnType<typeof keptFormOf>
  readonly thread: Awaited<ReturnType<typeof readThread>> | null
}

interface Keyed {
  readonly key: string
  readonly digest: string
}

/** Null for a run without an idempotency key. @throws {KisError} */
function keyOf({ apiKeyId }: Principal, { idempotencyKey, maxCost, ...request }: RunInput): Keyed | null {
  if (isAbsent(idempotencyKey)) return null
  const key = `${apiKeyId}:${sha256(checkIdempotencyKey(idempotencyKey))}`
  return { key, digest: requestDigest('agent_run', { ...request, maxCost: isAbsent(maxCost) ? null : String(maxCost) }) }
}

/** The agent as this run has it. */
function definitionFor(agent: AgentRecord, { sampling, responseSchema }: RunInput): AgentDefinition {
  const definition = readDefinition(agent.definition)
  return {
    ...definition,
    sampling: { ...definition.sampling, ...sampling },
    responseSchema: responseSchema ?? definition.responseSchema,
  }
}

/** How a run has ended, told with it in one write. */
function withEnd(run: RunRecord, { error, ...fields }: RunEnd): Update {
  const { $set, $push } = tell(run.organizationId, fields.endedAt, endOf(run, { error, ...fields }))
  return { $set: { ...fields, error: error && { ...error }, ...$set }, $push, $unset: { leaseUntil: '' } }
}

type RunEnd = Pick<RunRecord, 'status' | 'cost' | 'error'> & Partial<Pick<RunRecord, 'outcome' | 'steps'>> & { readonly endedAt: Date }

const CANCELLED = new KisError('invalid_request', 'The run was cancelled.')

export function underWay(): KisError {
  return new KisError('in_use', 'The run is under way. Cancel it, or wait for its end, and delete it then.', { param: 'id' })
}

function tooLong(): KisError {
  return new KisError('run_limit_exceeded', `The run took longer than ${MAX_RUN_MS / 1_000} s.`)
}

/** What was charged to calls that were cut is a line too, so that the lines sum to the charge. */
function withRest(steps: readonly RunStep[], cost: bigint): readonly RunStep[] {
  const rest = cost - steps.reduce((sum, step) => sum + step.cost, 0n)
  if (rest <= 0n) return steps
  return [...steps, { kind: 'cut', number: steps.at(-1)?.number ?? 1, cost: rest }]
}

function messagesOf({ input, messages, threadId, keepThread }: RunInput): readonly ProtocolObject[] {
  if (!isAbsent(input) && !isAbsent(messages))
    refuse('invalid_request', 'input.messages', 'A run is given `input` or `messages`, not both.')
  if (keepThread && !isAbsent(threadId))
    refuse('invalid_request', 'input.keepThread', 'A run goes on with a thread or begins one, not both.')
  if (isAbsent(messages)) {
    if (textAt(input, 'input.input').trim() === '') refuse('invalid_request', 'input.input', 'The question must not be empty.')
    return [{ role: 'user', content: input }]
  }
  checkMessages(messages, 'input.messages')
  return messages
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
