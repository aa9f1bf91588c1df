import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * In every eighth step, an organization's oldest job runs, however long it is, so that a stream of short ones cannot
 * delay it forever.
 */
const OLDEST_EVERY = 8

interface Job {
  readonly step: (index: number) => void | Promise<void>
  readonly steps: number
  /** Steps of all the work that the job is a part of, the job's own included. */
  readonly size: number
  readonly done: PromiseWithResolvers<void>
  next: number
}

/** The jobs of one organization, in order of arrival. */
interface Line {
  readonly jobs: Set<Job>
  stepsDone: number
  /** How much of its share it has used, on the queue's own time scale. */
  usedMs: number
  /** The duration of its last step, and the estimate for its next one. */
  stepMs: number
}

/**
 * Runs jobs one step at a time. Organizations share the time (weighted fair queueing with equal weights): the next is
 * the one that will have used the least after its step, and a newcomer starts level with the one that has used the
 * least so far. So a search waits for one step, however many others are busy. Within an organization the job whose work
 * has the fewest steps left comes first, so that a search's one text does not wait for the rest of an ingestion batch. The
 * event loop turns between steps, to receive new jobs and cancellations.
 */
export class StepQueue {
  /** By organization. One without jobs stays until its used share is made up. */
  readonly #lines = new Map<string, Line>()
  readonly #now: () => number
  #atMs = 0
  #running = false

  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /**
   * Resolves when `step(0)` … `step(steps - 1)` have run. `size`: steps of all the work that these are a part of.
   * @throws the reason of the aborted signal; no further step begins
   */
  async run(
    organizationId: string,
    steps: number,
    size: number,
    signal: AbortSignal,
    step: (index: number) => void | Promise<void>,
  ): Promise<void> {
    signal.throwIfAborted()
    if (steps === 0) return
    const job: Job = { step, steps, size, done: Promise.withResolvers(), next: 0 }
    const line = this.#lines.get(organizationId) ?? { jobs: new Set(), stepsDone: 0, usedMs: this.#atMs, stepMs: 0 }
    if (line.jobs.size === 0) line.usedMs = Math.max(line.usedMs, this.#atMs)
    line.jobs.add(job)
    this.#lines.set(organizationId, line)
    const onAbort = () => {
      line.jobs.delete(job)
      job.done.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    if (!this.#running) void this.#work()
    await job.done.promise.finally(() => signal.removeEventListener('abort', onAbort))
  }

  async #work(): Promise<void> {
    this.#running = true
    for (let line = this.#nextLine(); line; line = this.#nextLine()) {
      const job = chooseNext(line)!
      const startedMs = this.#now()
      try {
        await job.step(job.next)
        job.next += 1
        if (job.next === job.steps) {
          line.jobs.delete(job)
          job.done.resolve()
        }
      } catch (error) {
        line.jobs.delete(job)
        job.done.reject(error)
      }
      line.stepMs = this.#now() - startedMs
      line.usedMs += line.stepMs
      await nextTurn()
    }
    this.#running = false
  }

  /** The line whose next step would leave it with the least time used. */
  #nextLine(): Line | undefined {
    const busy = [...this.#lines.values()].filter(({ jobs }) => jobs.size > 0)
    if (busy.length > 0) this.#atMs = Math.max(this.#atMs, Math.min(...busy.map(({ usedMs }) => usedMs)))
    for (const [organizationId, { jobs, usedMs }] of this.#lines)
      if (jobs.size === 0 && (busy.length === 0 || usedMs <= this.#atMs)) this.#lines.delete(organizationId)
    return busy.reduce<Line | undefined>((best, line) => (best && expectedEnd(best) <= expectedEnd(line) ? best : line), undefined)
  }
}

const expectedEnd = ({ usedMs, stepMs }: Line) => usedMs + stepMs

const stepsLeft = ({ size, next }: Job) => size - next

function chooseNext(line: Line): Job | undefined {
  line.stepsDone += 1
  let chosen: Job | undefined
  for (const job of line.jobs) {
    if (!chosen || stepsLeft(job) < stepsLeft(chosen)) chosen = job
    if (line.stepsDone % OLDEST_EVERY === 0) break
  }
  return chosen
}
