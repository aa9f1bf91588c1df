import { locks } from 'node:worker_threads'
import type { Clock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'

/**
 * How long a suspect starts alone, unless it makes a call before. A step that ends its process at the beginning does so
 * within milliseconds.
 */
const ALONE_MS = 500

/**
 * Starts the runs of one process and finds those that end it. A run that was started before and has finished no step
 * since is a suspect: it may have ended its process. A suspect starts alone, until its first call or for a short time,
 * and its record says so. If the process ends during that time, this run ended it.
 */
export class PoisonGuard {
  /** The id of this process, and of the lock under which runs start: shared, or exclusive for a suspect. */
  readonly #id = randomHex(32)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Reports whether the run has ended the process in which it started alone.
   * @param alone the field of the run's record.
   */
  isConvicted(alone: string | null | undefined): boolean {
    return !!alone && alone !== this.#id
  }

  /**
   * Starts a run that is not a suspect, while no suspect starts.
   * @throws the reason of the signal, when it is aborted.
   */
  async start<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    await locks.request(this.#id, { mode: 'shared', signal }, () => undefined)
    return run()
  }

  /**
   * Starts a suspect alone.
   * @param mark records the process in which the run starts alone, or null when it no longer does.
   * @param run starts the run. It calls `calling` and awaits it before each of the run's calls.
   * @throws the reason of the signal, when it is aborted.
   */
  async startIsolated<T>(
    signal: AbortSignal,
    mark: (alone: string | null) => Promise<void>,
    run: (calling: () => Promise<void>) => Promise<T>,
  ): Promise<T> {
    const running = await locks.request(this.#id, { mode: 'exclusive', signal }, async () => {
      await mark(this.#id)
      const called = Promise.withResolvers<void>()
      const cleared = Promise.withResolvers<void>()
      const work = run(() => {
        called.resolve()
        return cleared.promise
      })
      const over = work.then(
        () => undefined,
        () => undefined,
      )
      await Promise.race([over, called.promise, this.#clock.sleep(ALONE_MS, signal).catch(() => undefined)])
      // If this fails, the run has lost its record or the store, and its own next write fails too.
      await mark(null).catch(() => undefined)
      cleared.resolve()
      return { work }
    })
    return running.work
  }
}
