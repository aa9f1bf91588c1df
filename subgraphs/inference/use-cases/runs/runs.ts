import { isAbsent } from '../../../common/check.ts'
import { FairJobs } from '../../../common/documents/fair-jobs.ts'
import { claimJob, claimSeen, HEARTBEAT_MS, LEASE_MS, releaseAllLeases } from '../../../common/documents/jobs.ts'
import { KisError, NotFound, TooBusy } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import { randomHex } from '../../../common/process/ids.ts'
import type { Task, Tasks } from '../../../common/process/tasks.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { checkIdempotencyKey, requestDigest, sha256 } from '../../domain/idempotency-key.ts'
import type { CallContext, RequestContext, RunDeps } from '../deps.ts'
import { reused } from '../idempotency/keyed-calls.ts'
import { type OpenRunHold, openRunHold } from '../money/hold.ts'
import type { RunBase } from '../tables.ts'
import type { PoisonGuard } from './poison-guard.ts'
import { purgeRun } from './retained-runs.ts'
import type { RunKind } from './run-kind.ts'
import { type RunEventBase, RunLog } from './run-log.ts'
import { reserveWhileWaiting } from './run-money.ts'
import { LeftToOthers } from './run-steps.ts'
import { CANCELLED, RunUnderLease } from './run-under-lease.ts'

/** How often a process polls for runs without a process, and for cancellations through another process. */
const POLL_MS = 1_000
/** How often a process polls for runs whose deadline passes while they wait for a slot. */
const LATE_POLL_MS = 5_000
const SWEEP_MS = 15_000
const MAX_SWEPT = 100
/** Retry time that a refused caller gets. Most runs last a few seconds; when the next one ends is unknown. */
const FULL_RETRY_MS = 2_000
/** How long runs and their events are stored at most: 30 days. */
const RETENTION_MS = 30 * 86_400_000

/** A run's idempotency key, and the digest of the request that was sent with it. */
interface Keyed {
  readonly key: string
  readonly digest: string
}

/**
 * Returns the key of a run, or null when it has none.
 * @throws {KisError} as `checkIdempotencyKey`: the key is invalid.
 */
export function keyedAs(
  operation: string,
  { apiKeyId }: Principal,
  { idempotencyKey, maxCost, ...request }: { readonly idempotencyKey?: string | null; readonly maxCost?: bigint | null },
): Keyed | null {
  if (isAbsent(idempotencyKey)) return null
  const key = `${apiKeyId}:${sha256(checkIdempotencyKey(idempotencyKey))}`
  return { key, digest: requestDigest(operation, { ...request, maxCost: isAbsent(maxCost) ? null : String(maxCost) }) }
}

interface NewRun<Run> {
  readonly runId: string
  readonly keyed: Keyed | null
  /** Nano-USD. */
  readonly maxCost: bigint
  readonly maxMs: number
  /** Adds the fields of the kind. */
  readonly record: (base: RunBase) => Run
  /** Stores what another process needs to continue the run. Called before the run is recorded. */
  readonly storeInput: () => Promise<void>
}

/** A run that was started, now or by an earlier request. */
export interface Begun<Run> {
  readonly run: Run
  /** The run was started before, with the same idempotency key. */
  readonly isReplayed: boolean
}

export interface RunsOptions {
  /** Resolves when the store is open. */
  readonly opened: Promise<unknown>
  /** No other process uses the store, so leases found there are of processes that are gone. */
  readonly isExclusive: boolean
  /** Detects runs of any kind that end this process. */
  readonly poisonGuard: PoisonGuard
  readonly tasks: Tasks
}

interface Running {
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/**
 * Runs of one kind. A run continues until it ends, reaches a limit or is cancelled. If its process is killed, another
 * one continues it.
 */
export class Runs<Run extends RunBase, Event extends RunEventBase> implements AsyncDisposable {
  readonly log: RunLog<Event>
  /** Resolves when runs can start: the store is open, and leases of gone processes are released. Never rejects. */
  readonly ready: Promise<void>
  readonly #deps: RunDeps
  readonly #kind: RunKind<Run, Event>
  readonly #poisonGuard: PoisonGuard
  readonly #running = new Map<string, Running>()
  readonly #slots: FairSemaphore
  readonly #jobs: FairJobs<Run>
  /** Pending polls for due runs; each slot that becomes free requests one. */
  #polling: Promise<void> = Promise.resolve()
  #isPollPending = false
  readonly #stopping = new AbortController()
  /** Undefined until the store has opened, because a stop does not wait for the store. */
  #background: Promise<unknown> | undefined

  constructor(deps: RunDeps, kind: RunKind<Run, Event>, { opened, isExclusive, poisonGuard, tasks }: RunsOptions) {
    this.#deps = deps
    this.#kind = kind
    this.#poisonGuard = poisonGuard
    this.#slots = new FairSemaphore(kind.maxRuns)
    this.#jobs = new FairJobs(kind.records, this.#slots, deps.clock)
    this.log = new RunLog(deps, kind.records)
    this.ready = opened.then(
      async () => {
        if (isExclusive) await this.#releaseLeases()
        const ofRuns = `${kind.noun}_runs`
        const table: readonly Task[] = [
          { name: `resume_${ofRuns}`, everyMs: POLL_MS, run: () => this.#poll() },
          { name: `stop_cancelled_${ofRuns}`, everyMs: POLL_MS, run: () => this.#pollCancelled() },
          { name: `end_late_${ofRuns}`, everyMs: LATE_POLL_MS, run: () => this.#endLate() },
          { name: `sweep_${ofRuns}`, everyMs: SWEEP_MS, isShared: true, run: () => this.#sweep() },
        ]
        this.#background = tasks.run(table, this.#stopping.signal)
      },
      // If its store cannot be opened, the service does not start and reports the reason.
      () => undefined,
    )
  }

  #releaseLeases(): Promise<void> {
    const { clock, log } = this.#deps
    return releaseAllLeases(this.#kind.records, clock).catch((error) =>
      log.warn({ err: error }, `runs of ${this.#kind.noun}s wait for their leases`),
    )
  }

  /**
   * Returns the run that was started with this key, or null when there is none.
   * @throws {KisError} `idempotency_conflict`: another request was sent with the key.
   */
  async earlier({ key, digest }: Keyed): Promise<Run | null> {
    const run = await this.#kind.records.findOne({ key })
    if (!run) return null
    if (run.digest !== digest) throw reused()
    if (!this.#kind.freesKey(run)) return run
    await this.#kind.records.findOneAndUpdate({ _id: run._id, key }, { $unset: { key: '', digest: '' } })
    return null
  }

  /**
   * Reserves the most that the run may cost and records the run. The run starts at once if a slot is free for its
   * organization. After an error no run has started, and no money is held.
   * @throws {KisError} `service_unavailable`: the process stops, or an awaited run finds no free slot in it.
   * @throws {KisError} `rate_limit_exceeded`: an awaited run finds no free slot for its organization.
   * @throws {KisError} as `openRunHold`.
   */
  async startRun(
    requestContext: RequestContext,
    principal: Principal,
    { runId, keyed, maxCost, maxMs, record, storeInput }: NewRun<Run>,
  ): Promise<Begun<Run>> {
    const deps = this.#deps
    if (this.#stopping.signal.aborted) throw new TooBusy('This process is stopping and starts no run.')
    const release = this.#slots.tryAcquire(principal.organizationId)
    if (!release && this.#kind.isAwaited) throw this.#full(principal)
    let hold: OpenRunHold | undefined
    try {
      const context: CallContext = { caller: runner(principal), requestId: runId, signal: requestContext.signal }
      const [held, stored] = await Promise.allSettled([openRunHold(deps, context, maxCost), storeInput()])
      if (held.status === 'rejected') throw held.reason
      hold = held.value
      if (stored.status === 'rejected') throw stored.reason
      const now = deps.clock.now()
      const deadline = later(now, maxMs)
      const run = record({
        _id: runId,
        organizationId: principal.organizationId,
        apiKeyId: principal.apiKeyId,
        scopes: [...principal.scopes],
        ...keyed,
        status: 'running',
        cost: null,
        error: null,
        isCancelled: false,
        outbox: [],
        holdId: hold.id,
        holdAmount: String(maxCost),
        maxCost: String(maxCost),
        job: {
          kind: 'run',
          organizationId: principal.organizationId,
          ...(release ? { dueAt: later(now, LEASE_MS), lease: randomHex(32), starts: 1 } : { dueAt: now, lease: null, starts: 0 }),
          deadline,
        },
        startedAt: now,
        deadline,
        endedAt: null,
        expiresAt: later(now, RETENTION_MS),
      })
      await this.#kind.records.insertOne(run)
      if (release) this.#execute(run, { principal, hold }, release)
      else reserveWhileWaiting(deps, run, hold)
      return { run, isReplayed: false }
    } catch (error) {
      release?.()
      await hold?.end().catch(() => undefined)
      await this.#kind
        .deleteInput(runId)
        .catch((cause) => deps.log.warn({ err: cause, runId }, 'the input of a run is retained until it expires'))
      const first = error instanceof DuplicateKey && keyed ? await this.earlier(keyed) : null
      if (first) return { run: first, isReplayed: true }
      throw error
    }
  }

  #full({ organizationId }: Principal): KisError {
    const own = this.#slots.heldBy(organizationId)
    if (own === 0) return new TooBusy('The service runs as many runs as it can.')
    const text = `Rate limit reached: the organization has ${own} runs of ${this.#kind.noun}s in progress, as many as it may have at the moment.`
    return new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
  }

  /** Returns the run when it has ended, or its current state when the caller disconnects. */
  async ended({ signal }: RequestContext, { organizationId, _id }: RunBase): Promise<Run> {
    const { records } = this.#kind
    const here = this.#running.get(_id)
    if (here) await untilAborted(here.ended, signal).catch(() => undefined)
    const run = (await records.findOne({ _id }))!
    if (run.status !== 'running' || signal.aborted) return run
    const events = this.log.follow(organizationId, _id, null)
    const close = () => void events.return?.()
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
    for await (const _event of events);
    signal.removeEventListener('abort', close)
    return (await records.findOne({ _id })) ?? run
  }

  /**
   * Cancels a run, which ends soon, whichever process has it. A run that has ended is unchanged.
   * @throws {NotFound} the organization has no such run.
   */
  async cancel({ caller }: RequestContext, runId: string): Promise<Run> {
    const { organizationId } = requireScope(caller, 'agents')
    return this.#cancel(organizationId, runId)
  }

  async #cancel(organizationId: string, runId: string): Promise<Run> {
    const { records } = this.#kind
    const run = await records.findOneAndUpdate({ _id: runId, organizationId, status: 'running' }, { $set: { isCancelled: true } })
    const found = run ?? (await records.findOne({ _id: runId, organizationId }))
    if (!found) throw new NotFound('run', runId, 'id')
    this.#running.get(runId)?.stop.abort(CANCELLED)
    if (run?.job?.lease === null) await this.#endWaiting(run)
    return found
  }

  /**
   * Deletes an ended run with its events and the results of its calls. Its idempotency key becomes free.
   * @throws {NotFound} the organization has no such run.
   * @throws {KisError} `in_use`: the run has not ended.
   */
  async delete({ caller }: RequestContext, runId: string): Promise<void> {
    const { organizationId } = requireScope(caller, 'agents')
    const run = await this.#kind.records.findOne({ _id: runId, organizationId })
    if (!run) throw new NotFound('run', runId, 'id')
    if (run.job || run.status === 'running')
      throw new KisError('in_use', 'The run is in progress. Cancel it, or wait for its end, and delete it then.', { param: 'id' })
    // The event of the run's end is delivered before the run is deleted.
    await this.#deps.runEnds.drain(organizationId)
    await purgeRun(this.#deps, this.#kind, runId)
  }

  /** Cancels the runs of an erased organization that are in progress, and deletes the others. True if there was none. */
  async erase(organizationId: string): Promise<boolean> {
    const { records } = this.#kind
    for (let after = '', isEmpty = true; ; isEmpty = false) {
      const page = await records.find({ organizationId, _id: { $gt: after } }, { sort: { _id: 1 }, limit: MAX_SWEPT })
      if (page.length === 0) return isEmpty
      await this.#deps.runEnds.drain(organizationId)
      for (const run of page) await this.#eraseRun(run, true)
      after = page.at(-1)!._id
    }
  }

  /**
   * Deletes a run that has ended. A run in progress stays, and with `isCancelled` is cancelled: repeat the call until the
   * run has ended.
   */
  async eraseRun(run: Pick<RunBase, '_id' | 'organizationId' | 'job' | 'status'>, isCancelled: boolean): Promise<void> {
    await this.#deps.runEnds.drain(run.organizationId)
    await this.#eraseRun(run, isCancelled)
  }

  async #eraseRun(
    { _id, organizationId, job, status }: Pick<RunBase, '_id' | 'organizationId' | 'job' | 'status'>,
    isCancelled: boolean,
  ): Promise<void> {
    if (!job && status !== 'running') await purgeRun(this.#deps, this.#kind, _id)
    else if (isCancelled) await this.#cancel(organizationId, _id)
  }

  /** Stops the work of this process. Runs in progress are left to the next process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new LeftToOthers())
    for (const { stop } of this.#running.values()) stop.abort(new LeftToOthers())
    await this.#polling
    await this.#background
    await Promise.all([...this.#running.values()].map(({ ended }) => ended))
  }

  /** Ends a waiting run that is over. This needs no slot. */
  async #endWaiting({ _id }: RunBase): Promise<void> {
    const { clock } = this.#deps
    const { records } = this.#kind
    if (this.#stopping.signal.aborted) return
    await records.findOneAndUpdate({ _id, 'job.lease': null }, { $set: { 'job.dueAt': clock.now() } })
    const claimed = await claimJob(records, clock, _id)
    if (claimed) await this.#resume(claimed, () => undefined)
  }

  #execute(run: Run, started: { readonly principal: Principal; readonly hold: OpenRunHold } | null, release: () => void): void {
    const { background } = this.#deps
    const stop = new AbortController()
    if (this.#stopping.signal.aborted) stop.abort(new LeftToOthers())
    const underLease = new RunUnderLease(this.#deps, this.#kind, this.log, run, {
      poisonGuard: this.#poisonGuard,
      started: started && { caller: runner(started.principal), hold: started.hold },
      stop,
      stopping: this.#stopping.signal,
      endWaiting: (waiting) => this.#endWaiting(waiting),
    })
    const ended = background.track(underLease.work(HEARTBEAT_MS)).finally(() => {
      this.#running.delete(run._id)
      release()
      this.#pollSoon()
    })
    this.#running.set(run._id, { stop, ended })
  }

  /** Continues runs that have no process. Organizations are served round robin. */
  async #poll(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const claimed = await this.#jobs.claim()
      if (!claimed) return
      await this.#resume(claimed.record, claimed.release)
    }
  }

  /** Requests a poll, because a slot has become free. */
  #pollSoon(): void {
    if (this.#isPollPending) return
    this.#isPollPending = true
    this.#polling = this.#polling
      .then(() => {
        this.#isPollPending = false
        return this.#poll()
      })
      .catch((error) => this.#deps.log.warn({ err: error }, `runs of ${this.#kind.noun}s wait for the next poll`))
  }

  /** Continues a run that this process has leased. */
  async #resume({ _id, job }: RunBase, release: () => void): Promise<void> {
    try {
      const begun = await this.#kind.records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $inc: { 'job.starts': 1 } })
      // Earlier work on the run in this process has lost its lease and ends.
      await this.#running.get(_id)?.ended
      if (begun) return this.#execute(begun, null, release)
    } catch (error) {
      release()
      throw error
    }
    release()
  }

  /** Stops the runs that were cancelled through another process, which marks them in their records. */
  async #pollCancelled(): Promise<void> {
    const ids = [...this.#running.keys()]
    if (ids.length === 0) return
    const runs = await this.#kind.records.find({ _id: { $in: ids } }, { limit: ids.length })
    for (const { _id, isCancelled } of runs) if (isCancelled) this.#running.get(_id)?.stop.abort(CANCELLED)
  }

  /** Ends runs whose deadline passes while they wait for a slot. */
  async #endLate(): Promise<void> {
    const { records } = this.#kind
    const now = this.#deps.clock.now()
    const late = await records.find({ 'job.deadline': { $lt: now } }, { sort: { 'job.deadline': 1 }, limit: MAX_SWEPT })
    for (const run of late) {
      const claimed = run.job!.lease === null && (await claimSeen(records, run, now))
      if (claimed) await this.#resume(claimed, () => undefined)
    }
  }

  async #sweep(): Promise<void> {
    const expired = { expiresAt: { $lt: this.#deps.clock.now() } }
    for (const { _id } of await this.#kind.records.find(expired, { sort: { expiresAt: 1 }, limit: MAX_SWEPT }))
      await purgeRun(this.#deps, this.#kind, _id)
    await this.#kind.sweep(this.log)
  }
}

/** Returns the run's caller, who may call models and search with the scope `agents` alone. */
function runner(principal: Principal): Principal {
  return { ...principal, isRun: true }
}

function later(date: Date, ms: number): Date {
  return new Date(date.getTime() + ms)
}
