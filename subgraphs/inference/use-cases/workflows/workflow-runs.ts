import { locks } from 'node:worker_threads'
import { checkDepth, isAbsent, objectAt, refuse } from '../../../common/check.ts'
import { FairJobs } from '../../../common/documents/fair-jobs.ts'
import { claimJob, claimSeen, HEARTBEAT_MS, LEASE_MS, releaseAllLeases } from '../../../common/documents/jobs.ts'
import { KisError, NotFound, TooBusy } from '../../../common/errors.ts'
import { tell } from '../../../common/events/event-log.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { checkIdempotencyKey, requestDigest, sha256 } from '../../domain/idempotency-key.ts'
import { maxCostOf, maxSecondsOf, type WorkflowDefinition } from '../../domain/workflows/definition.ts'
import type { NodeRun, WorkflowEvent } from '../../domain/workflows/run.ts'
import { underWay } from '../agents/agent-runs.ts'
import { getAgent, modelOf } from '../agents/agents.ts'
import { checkBySchema } from '../agents/schema-answers.ts'
import { byRulesInForce } from '../calls/principals.ts'
import type { AskContext, CallContext, Deps } from '../deps.ts'
import { forgetDeletedWorkflows } from '../forget.ts'
import { reused } from '../idempotency/keyed-calls.ts'
import { adoptRunHold, lasting, neverPlaced, type OpenRunHold, openRunHold } from '../money/hold.ts'
import { workflowEndOf } from '../runs/run-ends.ts'
import { RunLog } from '../runs/run-log.ts'
import { LeftToOthers, PutOff, RunSteps, type Waits } from '../runs/run-steps.ts'
import type { WorkflowRecord, WorkflowRunRecord } from '../tables.ts'
import type { PinnedAgent } from './node-task.ts'
import { type RunEnd, WorkflowRun } from './workflow-run.ts'
import { checkModel, getWorkflow, tasksOf, workflowVersionOf } from './workflows.ts'

/** Runs of one process at once: each holds its outputs in memory, a few megabytes at most. Others wait in the store. */
const MAX_RUNS = 200
/** Runs of one organization that have not ended: those that wait are looked at once a minute, some ten reads each. */
const MAX_OPEN_RUNS = 500
/** None of an organization's runs may have ended for a while: who waits a moment may find one that has. */
const FULL_RETRY_MS = 10_000
const MAX_INPUT_CHARACTERS = 262_144
/** How soon a process finds a run that has lost its own. */
const LOOK_MS = 1_000
/** A run that its process could not go on with is tried again after this. */
const PAUSE_MS = 5_000
/** Starts without a node done: the processes die of it. */
const MAX_STARTS = 5
/** How long a suspect begins alone unless it comes to a call before: what ends a process at a node's beginning does so within milliseconds. */
const ALONE_MS = 500
/** How long the calls of a run may take to end after the run: billing is asked for a minute. */
const MAX_SETTLING_MS = 120_000
const SETTLING_LOOK_MS = 100
/** Runs and their events are kept for so long: 30 days. */
const KEPT_MS = 30 * 86_400_000
const SWEEP_MS = 60_000
const MAX_SWEPT = 100
/** How soon after its time a run ends that has no place. */
const LATE_LOOK_MS = 5_000
/** What the hold of a waiting run lasts beyond the run's time, so that whoever ends it finds it. */
const LATE_HOLD_SECONDS = 60

export interface WorkflowRunInput {
  /** The workflow's id, or `workflow/<code>`. */
  readonly workflowId: string
  readonly inputs?: unknown
  /** At most what the workflow allows, in nano-USD. */
  readonly maxCost?: bigint | null
  /** At most what the workflow allows. */
  readonly maxSeconds?: number | null
  /** A repeat with it gives the same run, for as long as runs are kept. */
  readonly idempotencyKey?: string | null
}

/** A run's idempotency key, and what it was sent with. */
interface Keyed {
  readonly key: string
  readonly digest: string
}

interface Running {
  readonly record: WorkflowRunRecord
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/** Runs of workflows. A run goes on until its end, its caps or its cancellation, in whatever process: one that is killed leaves it to the next. */
export class WorkflowRuns implements AsyncDisposable {
  readonly log: RunLog<WorkflowEvent>
  readonly #deps: Deps
  readonly #running = new Map<string, Running>()
  readonly #places = new FairPlaces(MAX_RUNS)
  readonly #turns: FairJobs<WorkflowRunRecord>
  /** Starts under way that are not counted yet, by organization. */
  readonly #starting = new Map<string, number>()
  /** The looks for runs that ends of others have asked for. */
  #looking: Promise<void> = Promise.resolve()
  #isLookWanted = false
  /** Names this process, and the lock under which its runs begin: shared, and exclusive for a suspect. */
  readonly #id = randomHex(32)
  readonly #stopping = new AbortController()
  readonly #ready: Promise<void>
  /** Undefined while the store has not opened: a stop does not wait for that. */
  #background: Promise<unknown> | undefined

  /** Looks for runs once the store is `opened`. `isExclusive`: no other process has it, so that leases found there are of processes that are gone. */
  constructor(deps: Deps, opened: Promise<unknown>, isExclusive: boolean) {
    this.#deps = deps
    this.#turns = new FairJobs(deps.collections.workflowRuns, this.#places, deps.clock)
    this.log = new RunLog(deps, 'workflowRuns')
    const release = () => releaseAllLeases(deps.collections.workflowRuns, deps.clock)
    this.#ready = opened
      .then(() => (isExclusive ? release() : undefined))
      .catch((error) => deps.log.warn({ err: error }, 'runs wait for their leases'))
    this.#ready.then(() => {
      this.#background = Promise.all([
        this.#every(LOOK_MS, () => this.#look()),
        this.#every(LATE_LOOK_MS, () => this.#endLate()),
        this.#every(SWEEP_MS, () => this.#sweep()),
      ])
    })
  }

  /** Checks, reserves the most that the run may cost, and begins as soon as its organization has a place; answers at once. @throws {KisError} nothing has begun, and nothing is held. */
  start(ask: AskContext, input: WorkflowRunInput): Promise<WorkflowRunRecord> {
    return byRulesInForce(this.#deps, ask, (asking) => this.#start(asking, input))
  }

  async #start(ask: AskContext, input: WorkflowRunInput): Promise<WorkflowRunRecord> {
    const deps = this.#deps
    const principal = requireScope(ask.caller, 'agents')
    await this.#ready
    const keyed = keyOf(principal, input)
    const earlier = keyed && (await this.#earlier(keyed))
    if (earlier) return earlier
    const workflow = await getWorkflow(deps, principal, input.workflowId, 'input.workflowId')
    const definition = JSON.parse(workflow.definition) as WorkflowDefinition
    const inputs = inputsOf(input.inputs)
    if (definition.inputs)
      await checkBySchema(deps, principal, definition.inputs, inputs, { param: 'input.inputs', whole: 'The inputs' }, ask.signal)
    const agents = await pinnedAgents(deps, principal, definition)
    const maxCost = least(input.maxCost ?? maxCostOf(definition), maxCostOf(definition))
    if (maxCost <= 0n) refuse('unsupported_value', 'input.maxCost', 'The most that a run may cost is above 0.')
    const maxSeconds = Math.min(input.maxSeconds ?? maxSecondsOf(definition), maxSecondsOf(definition))
    if (maxSeconds < 1) refuse('integer_below_min_value', 'input.maxSeconds', "'input.maxSeconds' must be at least 1.")
    if (this.#stopping.signal.aborted) throw new TooBusy('This process is stopping and starts no run.')
    const counted = await this.#countIn(principal)
    try {
      return await this.#insert(principal, ask, { keyed, workflow, definition, inputs, agents, maxCost, maxSeconds })
    } finally {
      counted()
    }
  }

  async #insert(
    principal: Principal,
    ask: AskContext,
    { keyed, workflow, definition, inputs, agents, maxCost, maxSeconds }: CheckedStart,
  ): Promise<WorkflowRunRecord> {
    const deps = this.#deps
    const now = deps.clock.now()
    const runId = deps.ids('wfr')
    const context: CallContext = { caller: runner(principal), requestId: runId, signal: ask.signal }
    const hold = await openRunHold(deps, context, maxCost, true)
    const deadline = later(now, maxSeconds * 1_000)
    const leave = this.#places.tryTake(principal.organizationId)
    const record: WorkflowRunRecord = {
      _id: runId,
      organizationId: principal.organizationId,
      apiKeyId: principal.apiKeyId,
      ...keyed,
      workflowId: workflow._id,
      workflowVersion: workflow.version,
      status: 'running',
      inputs,
      output: null,
      nodes: Object.fromEntries(definition.nodes.map(({ id }) => [id, PENDING])),
      agents: JSON.stringify(agents),
      cost: null,
      error: null,
      isCancelled: false,
      outbox: [],
      holdId: hold.id,
      holdAmount: String(maxCost),
      maxCost: String(maxCost),
      job: {
        kind: 'run',
        workflowId: workflow._id,
        organizationId: principal.organizationId,
        ...(leave ? { dueAt: later(now, LEASE_MS), lease: randomHex(32), starts: 1 } : { dueAt: now, lease: null, starts: 0 }),
        deadline,
      },
      startedAt: now,
      deadline,
      endedAt: null,
      expiresAt: later(now, KEPT_MS),
    }
    try {
      await deps.collections.workflowRuns.insertOne(record)
    } catch (error) {
      leave?.()
      await hold.end().catch(() => undefined)
      const first = error instanceof DuplicateKey && keyed ? await this.#earlier(keyed) : null
      if (first) return first
      throw error
    }
    if (leave) this.#take(record, { principal, hold }, leave)
    else this.#leaveHold(record, hold)
    return record
  }

  /** Gives what ends the counting, once the run is in the store. @throws {KisError} `rate_limit_exceeded`: the organization has as many runs as it may. */
  async #countIn({ organizationId }: Principal): Promise<() => void> {
    const starting = this.#starting.get(organizationId) ?? 0
    this.#starting.set(organizationId, starting + 1)
    const over = () => {
      const left = this.#starting.get(organizationId)! - 1
      if (left > 0) this.#starting.set(organizationId, left)
      else this.#starting.delete(organizationId)
    }
    try {
      const open = await this.#deps.collections.workflowRuns.countDocuments({ 'job.organizationId': organizationId })
      if (open + starting < MAX_OPEN_RUNS) return over
      const text = `Rate limit reached: the organization may have ${MAX_OPEN_RUNS} runs of workflows that have not ended. Wait for some of them, or cancel them.`
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    } catch (error) {
      over()
      throw error
    }
  }

  /** The run that was begun with the key. @throws {KisError} `idempotency_conflict`: by another request. */
  async #earlier({ key, digest }: Keyed): Promise<WorkflowRunRecord | null> {
    const run = await this.#deps.collections.workflowRuns.findOne({ key })
    if (run && run.digest !== digest) throw reused()
    return run
  }

  /** The run when it has ended, or as it is when the caller leaves. */
  async ended({ signal }: AskContext, { organizationId, _id }: WorkflowRunRecord): Promise<WorkflowRunRecord> {
    const events = this.log.follow(organizationId, _id, null)
    const leave = () => void events.return?.()
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    for await (const _event of events);
    signal.removeEventListener('abort', leave)
    return (await this.#deps.collections.workflowRuns.findOne({ _id }))!
  }

  /** Ends the run soon, wherever it runs; one that has ended stays as it is. @throws {NotFound} */
  async cancel({ caller }: AskContext, runId: string): Promise<WorkflowRunRecord> {
    const { organizationId } = requireScope(caller, 'agents')
    const { workflowRuns } = this.#deps.collections
    const run = await workflowRuns.findOneAndUpdate({ _id: runId, organizationId, status: 'running' }, { $set: { isCancelled: true } })
    const found = run ?? (await workflowRuns.findOne({ _id: runId, organizationId }))
    if (!found) throw new NotFound('run', runId, 'id')
    this.#running.get(runId)?.stop.abort(CANCELLED)
    if (run?.job?.lease === null) await this.#endWaiting(run)
    return found
  }

  /** Takes a run that has ended out of the store, with its events and the answers of its calls. @throws {NotFound} @throws {KisError} `in_use`: it is under way. */
  async delete({ caller }: AskContext, runId: string): Promise<void> {
    const { organizationId } = requireScope(caller, 'agents')
    const run = await this.#deps.collections.workflowRuns.findOne({ _id: runId, organizationId })
    if (!run) throw new NotFound('run', runId, 'id')
    if (run.job) throw underWay()
    // Its end is told before it is forgotten.
    await this.#deps.runEnds.drain(organizationId)
    await this.#forget(runId)
  }

  async #forget(runId: string): Promise<void> {
    const { runEvents, keyedCalls, workflowRuns } = this.#deps.collections
    while ((await runEvents.deleteMany({ runId })) > 0);
    while ((await keyedCalls.deleteMany({ 'step.runId': runId })) > 0);
    await workflowRuns.findOneAndDelete({ _id: runId })
  }

  /** Ends a run that waits and is over: that needs no place. */
  async #endWaiting({ _id }: WorkflowRunRecord): Promise<void> {
    const { collections, clock } = this.#deps
    if (this.#stopping.signal.aborted) return
    await collections.workflowRuns.findOneAndUpdate({ _id, 'job.lease': null }, { $set: { 'job.dueAt': clock.now() } })
    const claimed = await claimJob(collections.workflowRuns, clock, _id)
    if (claimed) await this.#begin(claimed, () => undefined)
  }

  /** Runs that are under way are left to the next process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    for (const { stop } of this.#running.values()) stop.abort(new LeftToOthers())
    await this.#looking
    await this.#background
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
  }

  #take(record: WorkflowRunRecord, started: Started | null, leave: () => void): void {
    const stop = new AbortController()
    if (this.#stopping.signal.aborted) stop.abort(new LeftToOthers())
    const ended = this.#deps.background.track(this.#underLease(record, started, stop)).finally(() => {
      this.#running.delete(record._id)
      leave()
      this.#lookSoon()
    })
    this.#running.set(record._id, { record, stop, ended })
  }

  async #underLease(record: WorkflowRunRecord, started: Started | null, stop: AbortController): Promise<void> {
    const { clock, log } = this.#deps
    const runId = record._id
    const deadline = setTimeout(() => stop.abort(tooLong(record)), Math.max(0, record.deadline.getTime() - clock.now().getTime()))
    const heartbeat = setInterval(() => {
      this.#renew(record, stop).catch((error) => log.warn({ err: error, runId }, 'the lease of a run is not renewed'))
    }, HEARTBEAT_MS)
    if (record.isCancelled) stop.abort(CANCELLED)
    try {
      await this.#run(record, started, stop)
    } catch (error) {
      if (!(error instanceof LeftToOthers)) log.warn({ err: error, runId }, 'a run of a workflow is put off')
      await this.#giveBack(record, error).catch((cause) => log.warn({ err: cause, runId }, 'a run waits for its lease'))
    } finally {
      clearTimeout(deadline)
      clearInterval(heartbeat)
    }
  }

  /** @throws {LeftToOthers} @throws what keeps the run from going on now. */
  async #run(record: WorkflowRunRecord, started: Started | null, stop: AbortController): Promise<void> {
    if (record.status !== 'running') return this.#tellEnd(record)
    const caller = started ? runner(started.principal) : await this.#principalOf(record)
    // What is written of the run's money is not ended with its calls.
    const context = { caller, requestId: record._id, signal: this.#stopping.signal }
    let hold = started?.hold ?? null
    let end: RunEnd | null
    try {
      try {
        stop.signal.throwIfAborted()
        hold ??= await this.#holdOf(record, context)
        end = await this.#nodes(record, { ...context, signal: stop.signal, runHoldId: hold.id }, (reason) => stop.abort(reason))
      } catch (error) {
        if (hold && stop.signal.reason instanceof PutOff) this.#leaveHold(record, hold)
        end = endBy(stop.signal.aborted ? stop.signal.reason : error, stop.signal.aborted || hold === null)
      }
      await this.#end(record, end, hold, context)
    } finally {
      hold?.leave()
    }
    await this.#tellEnd(record)
  }

  /** The run's money stays reserved for as long as it may wait. */
  #leaveHold({ _id, deadline }: WorkflowRunRecord, hold: OpenRunHold): void {
    const { background, clock, log } = this.#deps
    const seconds = Math.ceil((deadline.getTime() - clock.now().getTime()) / 1_000) + LATE_HOLD_SECONDS
    background
      .track(hold.leaveFor(Math.max(LATE_HOLD_SECONDS, seconds)))
      // Whoever goes on with the run reserves it again.
      .catch((error) => log.warn({ err: error, runId: _id }, 'the hold of a waiting run expires'))
  }

  async #nodes(
    record: WorkflowRunRecord,
    context: CallContext & { readonly runHoldId: string },
    putOff: (reason: PutOff) => void,
  ): Promise<RunEnd> {
    const deps = this.#deps
    if (record.job!.starts > MAX_STARTS) {
      const message = `The run was begun ${MAX_STARTS} times, and no process came to the end of a node.`
      return { status: 'failed', error: { code: 'internal', message, nodeId: null } }
    }
    const { alone } = record.job!
    if (alone && alone !== this.#id) {
      const message = 'The run ended its process twice, the second time alone in it, and is not begun again. Give it less at once.'
      return { status: 'failed', error: { code: 'run_limit_exceeded', message, nodeId: null } }
    }
    const definition = await workflowVersionOf(deps, record.organizationId, record.workflowId, record.workflowVersion)
    if (!definition) throw new NotFound('workflow', record.workflowId)
    context.signal.throwIfAborted()
    const waits = JSON.parse(record.job!.waits ?? '{}') as Waits
    const agents = JSON.parse(record.agents) as Readonly<Record<string, PinnedAgent>>
    return this.#begun(record, context.signal, (calling) => {
      const steps = new RunSteps(deps, record._id, context, { waits, putOff, calling })
      return new WorkflowRun({ record, definition, tasks: { deps, context, steps, agents }, log: this.log }).run()
    })
  }

  /**
   * A run that was begun before and has not come to the end of a node since may have ended its process. Such a suspect begins alone, until it comes to a
   * call or for a while, and that stands in its record: if the process ends now, nothing else was it.
   * @param run hears what is to be done before its first call.
   */
  async #begun(record: WorkflowRunRecord, signal: AbortSignal, run: (calling: () => Promise<void>) => Promise<RunEnd>): Promise<RunEnd> {
    const { clock, log } = this.#deps
    if (record.job!.starts < 2) {
      await locks.request(this.#id, { mode: 'shared', signal }, () => undefined)
      return run(async () => undefined)
    }
    let running: Promise<RunEnd> | undefined
    await locks.request(this.#id, { mode: 'exclusive', signal }, async () => {
      await this.#write(record, { 'job.alone': this.#id })
      const called = Promise.withResolvers<void>()
      const cleared = Promise.withResolvers<void>()
      running = run(() => {
        called.resolve()
        return cleared.promise
      })
      const over = running.then(
        () => undefined,
        () => undefined,
      )
      await Promise.race([over, called.promise, clock.sleep(ALONE_MS, signal).catch(() => undefined)])
      // Who has lost the run or the store hears so by the next write of the run itself.
      await this.#write(record, { 'job.alone': null }).catch((error) =>
        log.info({ err: error, runId: record._id }, 'a run stays a suspect'),
      )
      cleared.resolve()
    })
    return running!
  }

  /** The hold that the process before had, or another of what the run may still cost. */
  async #holdOf(record: WorkflowRunRecord, context: CallContext): Promise<OpenRunHold> {
    const deps = this.#deps
    const charged = sumOf(await this.#charges(record, context))
    const adopted = await adoptRunHold(deps, context, record.holdId, BigInt(record.holdAmount))
    if (adopted) return adopted
    const amount = BigInt(record.maxCost) - charged
    return openRunHold(
      deps,
      {
        ...context,
        record: {
          isFreeWhenCut: true,
          holding: async (holdId) => void (await this.#write(record, { holdId, holdAmount: String(amount) })),
          holdEnded: () => undefined,
          answered: async () => undefined,
        },
      },
      amount,
      true,
    )
  }

  /** What the calls were charged, by node, when all of them have ended. */
  async #charges(record: WorkflowRunRecord, context: CallContext): Promise<ReadonlyMap<string, bigint>> {
    const { keyedCalls, clock } = this.#deps
    for (let waitedMs = 0; ; waitedMs += SETTLING_LOOK_MS) {
      try {
        return await keyedCalls.chargesOf(context, record._id)
      } catch (error) {
        if (!(error instanceof KisError) || error.code !== 'idempotency_conflict' || waitedMs >= MAX_SETTLING_MS) throw error
      }
      await clock.sleep(SETTLING_LOOK_MS, this.#stopping.signal).catch(() => {
        throw new LeftToOthers()
      })
    }
  }

  /** Frees what the run has left, and writes down how it has ended; null: it was cancelled. */
  async #end(record: WorkflowRunRecord, end: RunEnd | null, hold: OpenRunHold | null, context: CallContext): Promise<void> {
    const charges = await this.#charges(record, context)
    const ended = hold ? hold.end() : lasting(context, (bill) => this.#deps.billing.endRunHold(record.holdId, bill))
    await ended.catch(neverPlaced)
    const current = await this.#deps.collections.workflowRuns.findOne({ _id: record._id })
    const endedAt = this.#deps.clock.now()
    const error = end?.status === 'failed' ? end.error : null
    const nodes = Object.entries(current?.nodes ?? record.nodes).map(([id, node]) => {
      const cost = String(charges.get(id) ?? 0n)
      if (node.state === 'running')
        return [
          `nodes.${id}`,
          { ...node, state: error ? 'failed' : 'skipped', error: error && { code: error.code, message: error.message }, cost, endedAt },
        ]
      return [`nodes.${id}`, { ...node, ...(node.state === 'pending' && { state: 'skipped' }), cost }]
    })
    const fields = { status: end?.status ?? 'cancelled', error, cost: String(sumOf(charges)) } as const
    const { $set, $push } = tell(record.organizationId, endedAt, workflowEndOf(record, fields))
    const output = end?.status === 'completed' ? JSON.stringify(end.output) : null
    await this.#write(record, { ...Object.fromEntries(nodes), ...fields, output, endedAt, ...$set }, $push)
    this.#deps.runEnds.kick(record.organizationId)
  }

  /** The last event comes behind the record that it tells of, and the job is done when it is told. */
  async #tellEnd({ _id, organizationId, job }: WorkflowRunRecord): Promise<void> {
    const { workflowRuns } = this.#deps.collections
    const ended = await workflowRuns.findOne({ _id })
    if (!ended || ended.status === 'running') throw new LeftToOthers()
    await this.log.append(organizationId, _id, { type: 'done', status: ended.status })
    await workflowRuns.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $unset: { job: '' } })
  }

  async #principalOf({ organizationId, apiKeyId }: WorkflowRunRecord): Promise<Principal> {
    const principal = await this.#deps.billing.principalOf(organizationId, apiKeyId, this.#stopping.signal)
    if (!principal) throw new KisError('invalid_api_key', 'The organization of the run is gone.')
    return runner(principal)
  }

  /** @throws {LeftToOthers} another process has the run. */
  async #write({ _id, job }: WorkflowRunRecord, fields: Update['$set'] & object, told?: Update['$push'] & object) {
    const { workflowRuns } = this.#deps.collections
    const update = { $set: fields, ...(told && { $push: told }) }
    if (!(await workflowRuns.findOneAndUpdate({ _id, 'job.lease': job!.lease }, update))) throw new LeftToOthers()
  }

  async #renew({ _id, job }: WorkflowRunRecord, stop: AbortController): Promise<void> {
    const { collections, clock } = this.#deps
    const dueAt = later(clock.now(), LEASE_MS)
    const renewed = await collections.workflowRuns.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $set: { 'job.dueAt': dueAt } })
    if (!renewed) stop.abort(new LeftToOthers())
    else if (renewed.isCancelled) stop.abort(CANCELLED)
  }

  async #giveBack({ _id, job, deadline }: WorkflowRunRecord, reason: unknown): Promise<void> {
    const { collections, clock, log } = this.#deps
    const back = { 'job.lease': null, 'job.starts': 0, 'job.alone': null }
    const fields =
      reason instanceof PutOff
        ? { ...back, 'job.dueAt': earliest(reason.dueAt, deadline), 'job.waits': JSON.stringify(reason.waits) }
        : { ...back, 'job.dueAt': later(clock.now(), reason instanceof LeftToOthers ? 0 : PAUSE_MS) }
    const given = await collections.workflowRuns.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $set: fields })
    // Who cancelled it meanwhile saw a run that had a process.
    if (given?.isCancelled)
      this.#deps.background
        .track(this.#endWaiting(given))
        .catch((error) => log.warn({ err: error, runId: _id }, 'a cancelled run ends when it is due'))
  }

  /** Takes up the runs that have no process, organizations in turns. */
  async #look(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const claimed = await this.#turns.claim()
      if (!claimed) return
      await this.#begin(claimed.record, claimed.leave)
    }
  }

  /** A place has become free. */
  #lookSoon(): void {
    if (this.#isLookWanted) return
    this.#isLookWanted = true
    this.#looking = this.#looking
      .then(() => {
        this.#isLookWanted = false
        return this.#look()
      })
      .catch((error) => this.#deps.log.warn({ err: error }, 'runs of workflows wait for the next look'))
  }

  /** Goes on with a run that this process has leased. */
  async #begin({ _id, job }: WorkflowRunRecord, leave: () => void): Promise<void> {
    try {
      const begun = await this.#deps.collections.workflowRuns.findOneAndUpdate(
        { _id, 'job.lease': job!.lease },
        { $inc: { 'job.starts': 1 } },
      )
      // What this process has of the run has lost its lease, and comes to its end.
      await this.#running.get(_id)?.ended
      if (begun) return this.#take(begun, null, leave)
    } catch (error) {
      leave()
      throw error
    }
    leave()
  }

  /** Ends runs whose time is over while they wait for a place. */
  async #endLate(): Promise<void> {
    const { collections, clock } = this.#deps
    const now = clock.now()
    const late = await collections.workflowRuns.find({ 'job.deadline': { $lt: now } }, { sort: { 'job.deadline': 1 }, limit: MAX_SWEPT })
    for (const run of late) {
      const claimed = run.job!.lease === null && (await claimSeen(collections.workflowRuns, run, now))
      if (claimed) await this.#begin(claimed, () => undefined)
    }
  }

  async #sweep(): Promise<void> {
    const { collections, clock } = this.#deps
    const expired = { expiresAt: { $lt: clock.now() } }
    for (const { _id } of await collections.workflowRuns.find(expired, { sort: { expiresAt: 1 }, limit: MAX_SWEPT })) {
      await this.#forget(_id)
    }
    await forgetDeletedWorkflows(this.#deps)
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const { clock, log } = this.#deps
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await work().catch((error) => log.warn({ err: error }, 'runs of workflows could not be looked after'))
      await clock.sleep(ms, signal).catch(() => undefined)
    }
  }
}

/** A start that nothing is wrong with. */
interface CheckedStart {
  readonly keyed: Keyed | null
  readonly workflow: WorkflowRecord
  readonly definition: WorkflowDefinition
  readonly inputs: string
  readonly agents: Readonly<Record<string, PinnedAgent>>
  /** Nano-USD. */
  readonly maxCost: bigint
  readonly maxSeconds: number
}

/** What the process that has just begun a run knows of it. */
interface Started {
  readonly principal: Principal
  readonly hold: OpenRunHold
}

const PENDING: NodeRun = { state: 'pending', output: null, cost: '0', error: null, startedAt: null, endedAt: null }
const CANCELLED = new KisError('invalid_request', 'The run was cancelled.')

function runner(principal: Principal): Principal {
  return { ...principal, isRun: true }
}

/** Null for a run without an idempotency key. @throws {KisError} */
function keyOf({ apiKeyId }: Principal, { idempotencyKey, maxCost, ...request }: WorkflowRunInput): Keyed | null {
  if (isAbsent(idempotencyKey)) return null
  const key = `${apiKeyId}:${sha256(checkIdempotencyKey(idempotencyKey))}`
  return { key, digest: requestDigest('workflow_run', { ...request, maxCost: isAbsent(maxCost) ? null : String(maxCost) }) }
}

function tooLong({ startedAt, deadline }: WorkflowRunRecord): KisError {
  const seconds = Math.round((deadline.getTime() - startedAt.getTime()) / 1_000)
  return new KisError('run_limit_exceeded', `The run took longer than ${seconds} s.`)
}

/** How what has stopped a run ends it; null: it is cancelled. @throws what is no end of it. */
function endBy(reason: unknown, isFinal: boolean): RunEnd | null {
  if (reason === CANCELLED) return null
  if (!isFinal || !(reason instanceof KisError) || reason.shouldRetry) throw reason
  return { status: 'failed', error: { code: reason.code, message: reason.message, nodeId: null } }
}

/** As JSON. @throws {KisError} */
function inputsOf(value: unknown): string {
  const inputs = objectAt(value ?? {}, 'input.inputs')
  checkDepth(inputs, 'input.inputs')
  const text = JSON.stringify(inputs)
  if (text.length > MAX_INPUT_CHARACTERS)
    refuse('string_above_max_length', 'input.inputs', `The inputs have at most ${MAX_INPUT_CHARACTERS} characters as JSON.`)
  return text
}

/** The models are those that the caller may use, and the agents there, each with its version. */
async function pinnedAgents(deps: Deps, caller: Principal, definition: WorkflowDefinition): Promise<Readonly<Record<string, PinnedAgent>>> {
  const pinned: Record<string, PinnedAgent> = {}
  for (const { task } of tasksOf(definition)) {
    if (task.type === 'chat') modelOf(deps, { caller }, task.model, 'input.workflowId')
    if (task.type === 'transcribe') checkModel(deps, caller, 'transcription', task.model, 'input.workflowId')
    if (task.type !== 'agent') continue
    const { _id: agentId, version } = await getAgent(deps, caller, task.agent_id, 'input.workflowId')
    pinned[task.agent_id] = { agentId, version }
  }
  return pinned
}

function sumOf(charges: ReadonlyMap<string, bigint>): bigint {
  return [...charges.values()].reduce((sum, cost) => sum + cost, 0n)
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function earliest(a: Date, b: Date): Date {
  return a < b ? a : b
}

function later(date: Date, ms: number): Date {
  return new Date(date.getTime() + ms)
}
