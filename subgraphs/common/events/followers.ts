import { endableIterator } from '../process/endable-iterator.ts'

/** How soon followers learn what another process has written. What this process writes they learn at once. */
const POLL_MS = 300
/** The longest such delay: each check that finds nothing is followed by a longer wait. */
const MAX_POLL_MS = 1_000
const SLOWER = 1.2
/** Subjects of one check, as many as a query of the store may name. */
const MAX_SUBJECTS = 1_000

/** A follower that has read everything. */
interface Waiting {
  readonly subject: string
  readonly position: number
  readonly wake: () => void
}

/** Gives those of the subjects that have something after their position. At most 1,000 subjects. */
type FindBehind = (positions: ReadonlyMap<string, number>) => Promise<Iterable<string>>

/**
 * Followers of subjects such as runs. One check asks the store for all followers of the process together, so five
 * hundred followers cost as many checks as one, and each reads only when there is something new.
 */
export class Followers {
  readonly #findBehind: FindBehind
  /** The followers by subject. */
  readonly #of = new Map<string, Set<() => void>>()
  readonly #waiting = new Set<Waiting>()
  #pollMs = POLL_MS
  #timer: NodeJS.Timeout | undefined

  constructor(findBehind: FindBehind) {
    this.#findBehind = findBehind
  }

  /** Call it when this process has written something. */
  notify(subject: string): void {
    for (const notify of this.#of.get(subject) ?? []) notify()
  }

  /**
   * Gives the results of `read` one after another, without end: each time what is new, in order. `position` tells how
   * far it has read.
   */
  follow<T>(subject: string, read: () => Promise<readonly T[]>, position: () => number): AsyncIterableIterator<T, undefined> {
    let unread: T[] = []
    let wake = () => {}
    let isWoken = false
    let isEnded = false
    const notify = () => {
      isWoken = true
      wake()
    }
    const stop = this.#add(subject, notify)
    return endableIterator<T>(
      async () => {
        while (unread.length === 0) {
          isWoken = false
          unread = [...(await read())]
          if (isEnded) return { done: true, value: undefined }
          if (unread.length > 0 || isWoken) continue
          await new Promise<void>((resolve) => {
            const waiting = { subject, position: position(), wake: notify }
            wake = () => {
              this.#waiting.delete(waiting)
              resolve()
            }
            this.#wait(waiting)
          })
        }
        return { done: false, value: unread.shift()! }
      },
      () => {
        isEnded = true
        stop()
        notify()
      },
    )
  }

  /** Gives the function that removes it. */
  #add(subject: string, notify: () => void): () => void {
    const followers = this.#of.get(subject) ?? new Set()
    this.#of.set(subject, followers.add(notify))
    return () => {
      followers.delete(notify)
      if (followers.size === 0 && this.#of.get(subject) === followers) this.#of.delete(subject)
    }
  }

  #wait(waiting: Waiting): void {
    this.#waiting.add(waiting)
    this.#timer ??= setTimeout(() => void this.#poll(), this.#pollMs)
  }

  async #poll(): Promise<void> {
    const waiting = [...this.#waiting]
    let isAny = false
    try {
      const positions = new Map<string, number>()
      for (const { subject, position } of waiting) positions.set(subject, Math.min(position, positions.get(subject) ?? position))
      const all = [...positions]
      for (let from = 0; from < all.length; from += MAX_SUBJECTS) {
        const found = new Set(await this.#findBehind(new Map(all.slice(from, from + MAX_SUBJECTS))))
        isAny ||= found.size > 0
        for (const { subject, wake } of waiting) if (found.has(subject)) wake()
      }
    } catch {
      // Each one reads by itself, and reports what is wrong.
      for (const { wake } of waiting) wake()
    }
    this.#pollMs = isAny ? POLL_MS : Math.min(this.#pollMs * SLOWER, MAX_POLL_MS)
    this.#timer = this.#waiting.size > 0 ? setTimeout(() => void this.#poll(), this.#pollMs) : undefined
  }
}
