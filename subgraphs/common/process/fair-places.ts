/** Too many of an organization wait for a place already. */
export class NoPlace extends Error {
  override readonly name = 'NoPlace'
}

interface Waiter {
  readonly give: (leave: () => void) => void
}

/**
 * Places of one process that organizations share, such as runs or requests to the outside at once. It bounds three things: how many places are taken in all;
 * how many one organization has: it may take another only while it holds fewer than are free, so one alone gets half, and the next finds room at once;
 * and how many of one organization wait. A place that becomes free goes to the organization with the fewest, among equals to the one that has
 * waited longest since its last turn.
 */
export class FairPlaces {
  readonly #maxWaiting: number
  /** By organization, those that have any. */
  readonly #held = new Map<string, number>()
  /** By organization, in the order of their turns. */
  readonly #waiting = new Map<string, Set<Waiter>>()
  #free: number

  /** @param maxWaiting of one organization at once. */
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

  /** Takes a place, and returns the function that gives it back; calling that again changes nothing. Null: the organization can have none now. */
  tryTake(organizationId: string): (() => void) | null {
    return this.#hasRoom(organizationId) ? this.#take(organizationId) : null
  }

  /** Waits for a place, and gives what gives it back. @throws {NoPlace} at once, when too many wait. @throws the signal's reason. */
  take(organizationId: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const leave = this.tryTake(organizationId)
      if (leave) return resolve(leave)
      const waiting = this.#waiting.get(organizationId) ?? new Set()
      if (waiting.size >= this.#maxWaiting) throw new NoPlace('too many wait for a place')
      const onAbort = () => {
        this.#forget(organizationId, waiter)
        reject(signal.reason)
      }
      const waiter: Waiter = {
        give(place) {
          signal.removeEventListener('abort', onAbort)
          if (!signal.aborted) return resolve(place)
          // Given by another listener of the same abort, before this one's turn.
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

  /** The organization whose turn it is. Undefined: none that waits may take a place. */
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
