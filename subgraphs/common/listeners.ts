/** Who wants to hear of what happens to one of many, and is told in this process only. */
export class Listeners {
  readonly #of = new Map<string, Set<() => void>>()

  /** Gives what ends it. */
  add(subject: string, notify: () => void): () => void {
    const listeners = this.#of.get(subject) ?? new Set()
    this.#of.set(subject, listeners.add(notify))
    return () => {
      listeners.delete(notify)
      if (listeners.size === 0 && this.#of.get(subject) === listeners) this.#of.delete(subject)
    }
  }

  tell(subject: string): void {
    for (const notify of this.#of.get(subject) ?? []) notify()
  }
}
