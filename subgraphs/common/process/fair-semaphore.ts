import { TooBusy } from '../errors.ts'

/** Too many calls of an organization already wait for a permit. */
export class CapacityExceeded extends Error {
  override readonly name = 'CapacityExceeded'
}

/**
 * A handler for the `catch` of `acquire`. Throws `TooBusy` with this sentence in place of `CapacityExceeded`, and other
 * errors unchanged.
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
 * Permits of one process that organizations share, for example for concurrent runs or outgoing requests. There are
 * three limits: all acquired permits; the permits of one organization, which may acquire another only while it has
 * fewer than are free (alone it gets half, and the next organization gets one at once); and the waiting calls of one
 * organization. A released permit goes to the organization with the fewest permits; among equals, to the one that has
 * waited longest since its last permit.
 */
export class FairSemaphore {
  readonly #maxWaiting: number
  /** Acquired permits by organization. */
  readonly #held = new Map<string, number>()
  /** Waiting calls by organization, in the order of the round robin. */
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

  /** Returns the number of permits that the organization has acquired. */
  heldBy(organizationId: string): number {
    return this.#held.get(organizationId) ?? 0
  }

  /** Returns the number of waiting calls of the organization. */
  waitingOf(organizationId: string): number {
    return this.#waiting.get(organizationId)?.size ?? 0
  }

  /** Returns whether another organization waits. */
  isWantedBeside(organizationId: string): boolean {
    return this.#waiting.size > (this.#waiting.has(organizationId) ? 1 : 0)
  }

  /**
   * Acquires a permit, and returns the function that releases it; calling that function again has no effect. Null: the
   * organization cannot have a permit now.
   */
  tryAcquire(organizationId: string): (() => void) | null {
    return this.#hasRoom(organizationId) ? this.#grant(organizationId) : null
  }

  /**
   * Waits for a permit, and returns the function that releases it.
   * @throws {CapacityExceeded} too many calls already wait
   * @throws the reason of the aborted signal
   */
  acquire(organizationId: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const release = this.tryAcquire(organizationId)
      if (release) return resolve(release)
      const waiting = this.#waiting.get(organizationId) ?? new Set()
      if (waiting.size >= this.#maxWaiting) throw new CapacityExceeded('too many wait for a slot')
      const onAbort = () => {
        this.#dequeue(organizationId, waiter)
        reject(signal.reason)
      }
      const waiter: Waiter = {
        grant(release) {
          signal.removeEventListener('abort', onAbort)
          if (!signal.aborted) return resolve(release)
          // Another listener of the same abort has released a permit to this call.
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
      // The organization moves to the end of the round robin.
      this.#waiting.delete(next)
      this.#waiting.set(next, waiting)
      this.#dequeue(next, waiter!)
      waiter!.grant(this.#grant(next))
    }
  }

  /** Returns the next organization. Undefined: no waiting organization may acquire a permit. */
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
 * Waits for a permit for at most `maxWaitMs`, and returns the function that releases it.
 * @throws {CapacityExceeded} too many calls already wait, or no permit became free in time
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
  const timer = setTimeout(() => late.abort(new CapacityExceeded('no slot became free in time')), maxWaitMs)
  try {
    return await permits.acquire(organizationId, AbortSignal.any([signal, late.signal]))
  } finally {
    clearTimeout(timer)
  }
}
