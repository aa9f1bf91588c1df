import { setImmediate as nextTurn } from 'node:timers/promises'

/** Every so many steps the oldest job has its turn, however long it is, so that a stream of short ones cannot stop it. */
const OLDEST_EVERY = 8

/** The job was cancelled before it was done. */
export class JobCancelled extends Error {
  override readonly name = 'JobCancelled'
}

interface Job {
  readonly step: (index: number) => void | Promise<void>
  readonly steps: number
  readonly done: PromiseWithResolvers<void>
  next: number
}

/**
 * Works jobs off one step at a time, the job with the fewest steps left first: a search's one text does not wait for the rest of an
 * ingestion batch. Between steps the event loop turns, so that new jobs and cancellations are heard.
 */
export class StepQueue {
  /** In the order of their coming. */
  readonly #jobs = new Map<number, Job>()
  #running = false
  #stepsDone = 0

  /** Resolves when `step(0)` … `step(steps - 1)` have run. @throws {JobCancelled} */
  run(id: number, steps: number, step: (index: number) => void | Promise<void>): Promise<void> {
    if (steps === 0) return Promise.resolve()
    const job: Job = { step, steps, done: Promise.withResolvers(), next: 0 }
    this.#jobs.set(id, job)
    if (!this.#running) void this.#work()
    return job.done.promise
  }

  /** No step of the job begins any more. An unknown id is one that is done. */
  cancel(id: number): void {
    this.#jobs.get(id)?.done.reject(new JobCancelled('the job was cancelled'))
    this.#jobs.delete(id)
  }

  cancelAll(): void {
    for (const id of [...this.#jobs.keys()]) this.cancel(id)
  }

  async #work(): Promise<void> {
    this.#running = true
    for (let next = this.#choose(); next; next = this.#choose()) {
      const [id, job] = next
      try {
        await job.step(job.next)
        job.next += 1
        if (job.next === job.steps) {
          this.#jobs.delete(id)
          job.done.resolve()
        }
      } catch (error) {
        this.#jobs.delete(id)
        job.done.reject(error)
      }
      await nextTurn()
    }
    this.#running = false
  }

  #choose(): [number, Job] | undefined {
    this.#stepsDone += 1
    let chosen: [number, Job] | undefined
    for (const entry of this.#jobs) {
      if (!chosen || entry[1].steps - entry[1].next < chosen[1].steps - chosen[1].next) chosen = entry
      if (this.#stepsDone % OLDEST_EVERY === 0) break
    }
    return chosen
  }
}
