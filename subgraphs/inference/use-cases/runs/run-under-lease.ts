import { LEASE_MS } from '../../../common/documents/jobs.ts'
import { KisError } from '../../../common/errors.ts'
import { reportChange } from '../../../common/events/event-log.ts'
import { type Principal, withinScopes } from '../../../common/identity/principal.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import { renewWhile } from '../../../common/process/renew-while.ts'
import type { CallContext, RunDeps } from '../deps.ts'
import type { OpenRunHold } from '../money/hold.ts'
import type { RunBase } from '../tables.ts'
import type { PoisonGuard } from './poison-guard.ts'
import { deleteSurplus, positionAtEnd } from './retained-runs.ts'
import type { AtEnd, RunEnd, RunKind, RunWork } from './run-kind.ts'
import type { RunEventBase, RunEventWriter, RunLog } from './run-log.ts'
import { chargesOfRun, freeRest, reserveAgain, reserveWhileWaiting, sumCharges } from './run-money.ts'
import { LeftToOthers, PutOff, RunSteps, type Waits } from './run-steps.ts'

/** Pause before a run that its process could not continue is retried. */
const PAUSE_MS = 5_000
/** Most starts of a run without a finished step. After more, the run probably kills its processes. */
const MAX_STARTS = 5

export const CANCELLED = new KisError('invalid_request', 'The run was cancelled.')

/** Fields of the job of a run that made progress. They reset the evidence that the run ends its processes. */
const GOT_FURTHER = { 'job.starts': 1, 'job.alone': null }

interface Options {
  readonly poisonGuard: PoisonGuard
  /** The caller and the hold, when this process has just started the run. Null when it continues a run. */
  readonly started: { readonly caller: Principal; readonly hold: OpenRunHold } | null
  /** Stops the work on the run in this process. */
  readonly stop: AbortController
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal
  /** Ends a cancelled run that has no process. */
  readonly endWaiting: (run: RunBase) => Promise<void>
}

/** A run in the process that has leased it, until the run ends or the process releases the lease. */
export class RunUnderLease<Run extends RunBase, Event extends RunEventBase> {
  readonly #deps: RunDeps
  readonly #kind: RunKind<Run, Event>
  readonly #log: RunLog<Event>
  readonly #run: Run
  readonly #work: RunWork<Event>
  readonly #options: Options
  #steps: RunSteps | undefined
  #writer: RunEventWriter<Event> | undefined

  constructor(deps: RunDeps, kind: RunKind<Run, Event>, log: RunLog<Event>, run: Run, options: Options) {
    this.#deps = deps
    this.#kind = kind
    this.#log = log
    this.#run = run
    this.#work = kind.workOn(run, log)
    this.#options = options
  }

  /** Works on the run and renews its lease every `heartbeatMs` milliseconds. Never rejects. */
  async work(heartbeatMs: number): Promise<void> {
    const { clock, log } = this.#deps
    const { stop } = this.#options
    const { _id: runId, deadline, isCancelled } = this.#run
    const timer = setTimeout(() => stop.abort(tooLong(this.#run)), Math.max(0, deadline.getTime() - clock.now().getTime()))
    using _ = renewWhile({
      everyMs: heartbeatMs,
      renew: () => this.#renew(),
      lost: () => stop.abort(new LeftToOthers()),
      failed: (error) => log.warn({ err: error, runId }, 'the lease of a run is not renewed'),
    })
    if (isCancelled) stop.abort(CANCELLED)
    try {
      await this.#toItsEnd()
    } catch (error) {
      if (!(error instanceof LeftToOthers)) log.warn({ err: error, runId }, `a run is postponed (${this.#kind.noun})`)
      await this.#releaseLease(error).catch((cause) => log.warn({ err: cause, runId }, 'a run waits for its lease'))
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Works on the run until its end.
   * @throws {LeftToOthers} another process has the run.
   * @throws the error that prevents the run from continuing now.
   */
  async #toItsEnd(): Promise<void> {
    const run = this.#run
    const { started, stop, stopping } = this.#options
    if (run.status !== 'running') return this.#reportEnd()
    const caller = started?.caller ?? (await this.#caller())
    // Writes about the run's money must not end with its calls, so their signal is that of the process.
    const context: CallContext = { caller, requestId: run._id, signal: stopping }
    let hold = started?.hold ?? null
    let end: RunEnd
    try {
      try {
        stop.signal.throwIfAborted()
        hold ??= await reserveAgain(this.#deps, run, context, (fields) => this.#write(fields))
        end = await this.#resume({ ...context, signal: stop.signal, runHoldId: hold.id })
      } catch (error) {
        if (hold && stop.signal.reason instanceof PutOff) reserveWhileWaiting(this.#deps, run, hold)
        end = endBy(stop.signal.aborted ? stop.signal.reason : error, stop.signal.aborted || hold === null)
      }
      await this.#end(end, hold, context)
    } finally {
      hold?.stopRenewal()
    }
    await this.#reportEnd()
  }

  async #resume(context: CallContext & { readonly runHoldId: string }): Promise<RunEnd> {
    const { poisonGuard } = this.#options
    const { starts, alone } = this.#run.job!
    if (starts > MAX_STARTS) return failed('internal', `The run was started ${MAX_STARTS} times, and no process completed a step.`)
    if (poisonGuard.isConvicted(alone))
      return failed(
        'run_limit_exceeded',
        'The run ended its process twice, the second time alone in it, and is not started again. Reduce its input.',
      )
    if (starts < 2) return poisonGuard.start(context.signal, () => this.#runSteps(context, async () => undefined))
    const mark = (alone: string | null) => this.#write({ 'job.alone': alone })
    return poisonGuard.startIsolated(context.signal, mark, (calling) => this.#runSteps(context, calling))
  }

  async #runSteps(context: CallContext & { readonly runHoldId: string }, calling: () => Promise<void>): Promise<RunEnd> {
    const { started, stop } = this.#options
    const { _id: runId, job } = this.#run
    this.#steps = new RunSteps(this.#deps, runId, context, {
      waits: JSON.parse(job!.waits ?? '{}') as Waits,
      isAwaited: this.#kind.isAwaited && started !== null,
      putOff: (reason) => stop.abort(reason),
      calling,
    })
    this.#writer = await this.#log.writerFor(this.#run, started !== null)
    const write = (fields: Update['$set'] & object) => this.#write(fields)
    return this.#work.work({ context, steps: this.#steps, writer: this.#writer, write, gotFurther: GOT_FURTHER })
  }

  /** Releases the remaining money of the run, and records how the run ended. */
  async #end(end: RunEnd, hold: OpenRunHold | null, context: CallContext): Promise<void> {
    const { organizationId } = this.#run
    const charges = await chargesOfRun(this.#deps, this.#run, context)
    await freeRest(this.#deps, this.#run, hold, context)
    const endedAt = this.#deps.clock.now()
    const ended = { status: end.status, error: end.status === 'failed' ? end.error : null, cost: String(sumCharges(charges)), endedAt }
    const { fields, event } = await this.#work.atEnd(ended, end.status === 'completed' ? end.output : null, charges)
    const { $set, $push } = reportChange(organizationId, endedAt, event)
    const position = await positionAtEnd(this.#deps, organizationId, this.#kind.noun, await this.#characters(fields))
    await this.#write({ ...ended, ...fields, ...position, ...$set }, $push)
    this.#deps.runEnds.kick(organizationId)
  }

  /** Returns the characters that the ended run takes in the store. */
  async #characters(fields: AtEnd['fields']): Promise<number> {
    const events = this.#writer?.characters ?? (await this.#log.countCharacters(this.#run._id))
    return JSON.stringify({ ...this.#run, ...fields }).length + events + (this.#steps?.characters ?? 0)
  }

  /** Writes the last event after the record of the end, then deletes the job: nothing remains to be done. */
  async #reportEnd(): Promise<void> {
    const { background, log } = this.#deps
    const { _id, organizationId, job } = this.#run
    const ended = await this.#kind.records.findOne({ _id })
    if (!ended || ended.status === 'running') throw new LeftToOthers()
    await this.#log.end(organizationId, _id, ended.status)
    await this.#kind.deleteInput(_id)
    await this.#kind.records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $unset: { job: '' } })
    background
      .track(deleteSurplus(this.#deps, this.#kind, ended))
      .catch((error) => log.warn({ err: error, organizationId }, 'the oldest runs are deleted when the next run ends'))
  }

  async #caller(): Promise<Principal> {
    const { organizationId, apiKeyId, scopes } = this.#run
    const principal = await this.#deps.billing.findPrincipal(organizationId, apiKeyId, this.#options.stopping)
    if (!principal) throw new KisError('invalid_api_key', 'The organization of the run is gone.')
    return { ...(scopes ? withinScopes(principal, scopes) : principal), isRun: true }
  }

  /** @throws {LeftToOthers} another process has the run. */
  async #write(fields: Update['$set'] & object, push?: Update['$push'] & object): Promise<void> {
    const { _id, job } = this.#run
    const update = { $set: fields, ...(push && { $push: push }) }
    if (!(await this.#kind.records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, update))) throw new LeftToOthers()
  }

  #renew(): Promise<boolean> {
    const { _id, job } = this.#run
    const dueAt = later(this.#deps.clock.now(), LEASE_MS)
    return this.#kind.records.updateOne({ _id, 'job.lease': job!.lease }, { $set: { 'job.dueAt': dueAt } })
  }

  async #releaseLease(reason: unknown): Promise<void> {
    const { _id, job, deadline } = this.#run
    const { background, clock, log } = this.#deps
    const back = { 'job.lease': null, 'job.starts': 0, 'job.alone': null }
    const fields =
      reason instanceof PutOff
        ? { ...back, 'job.dueAt': earliest(reason.dueAt, deadline), 'job.waits': JSON.stringify(reason.waits) }
        : { ...back, 'job.dueAt': later(clock.now(), reason instanceof LeftToOthers ? 0 : PAUSE_MS) }
    const released = await this.#kind.records.findOneAndUpdate({ _id, 'job.lease': job!.lease }, { $set: fields })
    // A caller who cancelled the run meanwhile left its end to this process.
    if (released?.isCancelled)
      background
        .track(this.#options.endWaiting(released))
        .catch((error) => log.warn({ err: error, runId: _id }, 'a cancelled run ends when it is due'))
  }
}

function failed(code: KisError['code'], message: string): RunEnd {
  return { status: 'failed', error: { code, message } }
}

function tooLong({ startedAt, deadline }: RunBase): KisError {
  const seconds = Math.round((deadline.getTime() - startedAt.getTime()) / 1_000)
  return new KisError('run_limit_exceeded', `The run took longer than ${seconds} s.`)
}

/**
 * Converts the reason why a run stopped to its end.
 * @throws the reason, when it does not end the run.
 */
function endBy(reason: unknown, isFinal: boolean): RunEnd {
  if (reason === CANCELLED) return { status: 'cancelled' }
  if (!isFinal || !(reason instanceof KisError) || reason.shouldRetry) throw reason
  return failed(reason.code, reason.message)
}

function earliest(a: Date, b: Date): Date {
  return a < b ? a : b
}

function later(date: Date, ms: number): Date {
  return new Date(date.getTime() + ms)
}
