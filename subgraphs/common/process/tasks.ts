import type { CollectionSpec, DocumentCollection, StoredDocument } from '../ports/document-store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Clock } from './clock.ts'
import { randomHex } from './ids.ts'
import type { Log } from './log.ts'
import { renewWhile } from './renew-while.ts'

/** A process that has not renewed its lease of a task for this long counts as ended. */
const LEASE_MS = 30_000
/** A third of the lease, so that two renewals may be lost. */
const LEASE_RENEW_MS = 10_000
/** After a failure the pauses double up to this value, unless they are longer anyway. */
const MAX_BACKOFF_MS = 10_000
/** The longest pause after a failure, and between two polls of the lease of a rare task. */
const MAX_POLL_MS = 600_000
/** Pauses vary by this fraction, so that processes that started together do not run together forever. */
const JITTER = 0.1
/** Rounds that may fail without a warning, because another part of the service may still be starting. */
const MAX_QUIET_FAILURES = 3

/** Background work that is repeated until the process stops. */
export interface Task {
  /** Verb first, unique in its part of the service: a label of metrics and a field of the log. */
  readonly name: string
  /** Pause from the end of one round to the next. */
  readonly everyMs: number
  /**
   * True: the processes of this part share the task, and one of them at a time runs it. Default: each process runs it.
   */
  readonly isShared?: boolean
  /** Runs one round. It may be repeated after a crash. */
  run(signal: AbortSignal): unknown
}

/** The process that runs a shared task, and when the task is due. */
export interface TaskLease extends StoredDocument {
  /** While a process runs the task: the end of its lease. */
  readonly dueAt: Date
  readonly holder: string | null
  /** Null: never. */
  readonly succeededAt: Date | null
}

export const TASK_LEASES: CollectionSpec = { name: 'task_leases', indexes: [] }

interface TasksParts {
  /** The part of the service, the first word of each task's name. */
  readonly part: string
  readonly leases: DocumentCollection<TaskLease>
  /**
   * True: no other process uses the store. Then only tasks take a lease that are so rare that a restart must remember
   * them.
   */
  readonly isExclusive: boolean
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** Repeats the background work of one part of the service. */
export class Tasks {
  readonly #parts: TasksParts
  readonly #holder = randomHex(16)

  constructor(parts: TasksParts) {
    this.#parts = parts
  }

  /** Repeats the tasks until the signal aborts. Resolves when the last round has ended. Never rejects. */
  async run(tasks: readonly Task[], signal: AbortSignal): Promise<void> {
    await Promise.all(tasks.map((task) => this.#repeat(task, signal)))
  }

  async #repeat(task: Task, signal: AbortSignal): Promise<void> {
    const { part, clock, log, metrics, isExclusive } = this.#parts
    const name = `${part}.${task.name}`
    const isLeased = task.isShared && !(isExclusive && task.everyMs <= MAX_POLL_MS)
    let succeededAt = this.#now()
    // A round of a rare task takes time, too.
    const late = () => Math.max(0, this.#now() - succeededAt - task.everyMs * (1 + JITTER)) / 1_000
    using _ = metrics.gauge('kis_task_late_seconds', () => [[late(), name]])
    for (let failures = 0; !signal.aborted; ) {
      const begun = performance.now()
      // A shared task that is rare is polled in between: the pause must not add to its interval.
      let pauseMs = isLeased ? Math.min(task.everyMs, MAX_POLL_MS) : task.everyMs
      const observe = (outcome: string) => metrics.observe('kis_task_seconds', (performance.now() - begun) / 1_000, name, outcome)
      try {
        const elsewhere = isLeased ? await this.#runIfDue(task, name, signal) : await task.run(signal)
        if (signal.aborted) return
        failures = 0
        if (elsewhere instanceof Elsewhere) {
          succeededAt = elsewhere.succeededAt ?? succeededAt
          pauseMs = elsewhere.waitMs
        } else {
          succeededAt = this.#now()
          observe('done')
        }
      } catch (error) {
        if (signal.aborted) return
        pauseMs = backoff(task, ++failures)
        observe('failed')
        log[failures > MAX_QUIET_FAILURES ? 'warn' : 'info']({ err: error, task: name, failures }, 'a task failed and is repeated')
      }
      await clock.sleep(pauseMs * (1 - JITTER + 2 * JITTER * Math.random()), signal).catch(() => undefined)
    }
  }

  /** Runs a round of a shared task if it is due and no other process runs it. */
  async #runIfDue(task: Task, _id: string, signal: AbortSignal): Promise<Elsewhere | undefined> {
    const { leases, log } = this.#parts
    const holder = this.#holder
    const found = await leases.findOne({ _id })
    if (!found) await leases.insertMissing([{ _id, dueAt: new Date(this.#now()), holder: null, succeededAt: null }])
    const lease = found ?? (await leases.findOne({ _id }))!
    const waitMs = lease.dueAt.getTime() - this.#now()
    const elsewhere = new Elsewhere(lease.succeededAt?.getTime() ?? null, Math.min(Math.max(waitMs, LEASE_RENEW_MS), MAX_POLL_MS))
    // A time that is too far in the future comes from a wrong clock.
    if (waitMs > 0 && waitMs <= Math.max(task.everyMs, LEASE_MS)) return elsewhere
    const hold = (ms: number, fields: Partial<TaskLease> = {}) => ({ $set: { dueAt: new Date(this.#now() + ms), ...fields } })
    if (!(await leases.updateOne({ _id, dueAt: lease.dueAt }, hold(LEASE_MS, { holder })))) return elsewhere
    const lost = new AbortController()
    const renew = () => leases.updateOne({ _id, holder }, hold(LEASE_MS))
    const releaseLease = (ms: number, fields: Partial<TaskLease> = {}) =>
      leases.updateOne({ _id, holder }, hold(ms, { holder: null, ...fields }))
    try {
      using _ = renewWhile({ everyMs: LEASE_RENEW_MS, renew, lost: () => lost.abort(new Error('another process has the task')) })
      await task.run(AbortSignal.any([signal, lost.signal]))
      signal.throwIfAborted()
      lost.signal.throwIfAborted()
    } catch (error) {
      // If this fails, the lease expires.
      await releaseLease(signal.aborted ? 0 : backoff(task, 1)).catch((cause) =>
        log.debug({ err: cause, task: _id }, 'a lease is left to expire'),
      )
      throw error
    }
    await releaseLease(task.everyMs, { succeededAt: new Date(this.#now()) })
    return undefined
  }

  #now(): number {
    return this.#parts.clock.now().getTime()
  }
}

/** The result when another process runs the task, or has just run it. */
class Elsewhere {
  readonly succeededAt: number | null
  readonly waitMs: number

  constructor(succeededAt: number | null, waitMs: number) {
    this.succeededAt = succeededAt
    this.waitMs = waitMs
  }
}

function backoff({ everyMs }: Task, failures: number): number {
  const firstMs = Math.min(everyMs, MAX_POLL_MS)
  return Math.min(firstMs * 2 ** failures, Math.max(firstMs, MAX_BACKOFF_MS))
}
