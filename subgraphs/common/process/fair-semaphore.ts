import { TooBusy } from '../errors.ts'

/** Too many calls of an organization already wait for a place. */
export class CapacityExceeded extends Error {
  override readonly name = 'CapacityExceeded'
}

/**
 * For the `catch` of `take`. Throws `TooBusy` with this sentence in place of `CapacityExceeded`, and other errors as they are.
 */
export function orTooBusy(why: string): (error: unknown) => never {
  return (error) => {
    throw error instanceof CapacityExceeded ? new TooBusy(why) : error
  }
}

interface Waiter {
  readonly grant: (release: () => void) => void
}

/**
 * Places of one process that organizations share, such as concurrent runs or requests to the outside. There are three
 * limits: on all taken places; on those of one organization, which may take another only while it has fewer than are
 * free (alone it gets half, and the next organization finds room at once); and on waiting calls of one organization. A
 * freed place goes to the organization with the fewest places; among equals, to the one whose last turn is longest ago.
 */
export class FairSemaphore {
  readonly #maxWaiting: number
  /** Taken places by organization. */
  readonly #held = new Map<string, number>()
  /** Waiting calls by organization, in the order of turns. */
  readonly #waiting = new Map<string, Set<Waiter>>()
  #free: number

  /** @param maxWaiting for each organization */
  constructor(permits: number, maxWaiting = 0) {
    this.#free = permits
    this.#maxWaiting = maxWaiting
  }

  get isFull(): boolean {
    return this.#free === 0
  }

  heldBy(organizationId: string): number {
    return this.#held.get(organizationId) ?? 0
  }

  /** How many calls of the organization wait. */
  waitingOf(organizationId: string): number {
    return this.#waiting.get(organizationId)?.size ?? 0
  }

  /** Whether another organization waits. */
  isWantedBeside(organizationId: string): boolean {
    return this.#waiting.size > (this.#waiting.has(organizationId) ? 1 : 0)
  }

  /**
   * Takes a place, and gives the function that frees it; calling that again has no effect. Null: the organization
   * cannot have a place now.
   */
  tryAcquire(organizationId: string): (() => void) | null {
    return this.#hasRoom(organizationId) ? this.#grant(organizationId) : null
  }

  /**
   * Waits for a place, and gives the function that frees it.
   * @throws {CapacityExceeded} too many calls already wait
   * @throws the reason of the aborted signal
   */
  acquire(organizationId: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const release = this.tryAcquire(organizationId)
      if (release) return resolve(release)
      const waiting = this.#waiting.get(organizationId) ?? new Set()
      if (waiting.size >= this.#maxWaiting) throw new CapacityExceeded('too many wait for a place')
      const onAbort = () => {
        this.#dequeue(organizationId, waiter)
        reject(signal.reason)
      }
      const waiter: Waiter = {
        grant(release) {
          signal.removeEventListener('abort', onAbort)
          if (!signal.aborted) return resolve(release)
          // Another listener of the same abort has given the place to this call.
          reject(signal.reason)
          release()
        },
      }
      this.#waiting.set(organizationId, waiting.add(waiter))
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #hasRoom(organizationId: string): boolean {
    return this.heldBy(organizationId) < this.#free
  }

  #grant(organizationId: string): () => void {
    this.#free -= 1
    this.#held.set(organizationId, this.heldBy(organizationId) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#free += 1
      const left = this.heldBy(organizationId) - 1
      if (left > 0) this.#held.set(organizationId, left)
      else this.#held.delete(organizationId)
      this.#grantWaiting()
    }
  }

  #grantWaiting(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const waiting = this.#waiting.get(next)!
      const [waiter] = waiting
      // Its next turn comes after everybody else's.
      this.#waiting.delete(next)
      this.#waiting.set(next, waiting)
      this.#dequeue(next, waiter!)
      waiter!.grant(this.#grant(next))
    }
  }

  /** The organization whose turn it is. Undefined: no waiting organization may take a place. */
  #next(): string | undefined {
    let chosen: string | undefined
    for (const organizationId of this.#waiting.keys())
      if (this.#hasRoom(organizationId) && (chosen === undefined || this.heldBy(organizationId) < this.heldBy(chosen)))
        chosen = organizationId
    return chosen
  }

  #dequeue(organizationId: string, waiter: Waiter): void {
    const waiting = this.#waiting.get(organizationId)
    waiting?.delete(waiter)
    if (waiting?.size === 0) this.#waiting.delete(organizationId)
  }
}

const NEVER = new AbortController().signal

/**
 * Waits for a place for `maxWaitMs` at most, and gives the function that frees it.
 * @throws {CapacityExceeded} too many calls already wait, or no place became free in time
 * @throws the reason of the aborted signal
 */
export async function acquireWithTimeout(
  permits: FairSemaphore,
  organizationId: string,
  maxWaitMs: number,
  signal = NEVER,
): Promise<() => void> {
  signal.throwIfAborted()
  const release = permits.tryAcquire(organizationId)
  if (release) return release
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new CapacityExceeded('no place became free in time')), maxWaitMs)
  try {
    return await permits.acquire(organizationId, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}
