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
  readonly give: (leave: () => void) => void
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
  constructor(places: number, maxWaiting = 0) {
    this.#free = places
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
  tryTake(organizationId: string): (() => void) | null {
    return this.#hasRoom(organizationId) ? this.#take(organizationId) : null
  }

  /**
   * Waits for a place, and gives the function that frees it.
   * @throws {CapacityExceeded} too many calls already wait
   * @throws the reason of the aborted signal
   */
  take(organizationId: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const leave = this.tryTake(organizationId)
      if (leave) return resolve(leave)
      const waiting = this.#waiting.get(organizationId) ?? new Set()
      if (waiting.size >= this.#maxWaiting) throw new CapacityExceeded('too many wait for a place')
      const onAbort = () => {
        this.#forget(organizationId, waiter)
        reject(signal.reason)
      }
      const waiter: Waiter = {
        give(place) {
          signal.removeEventListener('abort', onAbort)
          if (!signal.aborted) return resolve(place)
          // Another listener of the same abort has given the place to this call.
          reject(signal.reason)
          place()
        },
      }
      this.#waiting.set(organizationId, waiting.add(waiter))
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #hasRoom(organizationId: string): boolean {
    return this.heldBy(organizationId) < this.#free
  }

  #take(organizationId: string): () => void {
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
      this.#giveOut()
    }
  }

  #giveOut(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const waiting = this.#waiting.get(next)!
      const [waiter] = waiting
      // Its next turn comes after everybody else's.
      this.#waiting.delete(next)
      this.#waiting.set(next, waiting)
      this.#forget(next, waiter!)
      waiter!.give(this.#take(next))
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

  #forget(organizationId: string, waiter: Waiter): void {
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
  places: FairSemaphore,
  organizationId: string,
  maxWaitMs: number,
  signal = NEVER,
): Promise<() => void> {
  signal.throwIfAborted()
  const leave = places.tryTake(organizationId)
  if (leave) return leave
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new CapacityExceeded('no place became free in time')), maxWaitMs)
  try {
    return await places.take(organizationId, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}
