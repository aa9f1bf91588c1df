import { locks } from 'node:worker_threads'
import type { Clock } from '../../../common/process/clock.ts'
import { randomHex } from '../../../common/process/ids.ts'

/**
 * How long a suspect begins alone unless it comes to a call before: what ends a process at a step's beginning does so
 * within milliseconds.
 */
const ALONE_MS = 500

/**
 * Begins the runs of one process, and finds those that end it. A run that was begun before and has not come to the end
 * of a step since may have ended its process. Such a suspect begins alone, until it comes to a call or for a while, and
 * its record says so: if the process ends now, this run ended it.
 */
export class Suspects {
  /** Names this process, and the lock under which its runs begin: shared, and exclusive for a suspect. */
  readonly #id = randomHex(32)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the run has ended the process in which it began alone. @param alone as the run's record has it. */
  isConvicted(alone: string | null | undefined): boolean {
    return !!alone && alone !== this.#id
  }

  /** Begins a run that is no suspect, when no suspect begins. @throws the signal's reason. */
  async begin<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    await locks.request(this.#id, { mode: 'shared', signal }, () => undefined)
    return run()
  }

  /**
   * @param mark writes down in which process the run begins alone; null: in none any more.
   * @param run begins the run; it calls and awaits `calling` before each of its calls.
   * @throws the signal's reason.
   */
  async beginAlone<T>(
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
      // A run that has lost its record or the store fails by its own next write.
      await mark(null).catch(() => undefined)
      cleared.resolve()
      return { work }
    })
    return running.work
  }
}
