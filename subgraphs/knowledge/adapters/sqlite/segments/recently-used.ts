/** Keeps values up to so many bytes in all. What was used longest ago leaves first. */
export class RecentlyUsed<V> {
  readonly #kept = new Map<string, { readonly value: V; readonly bytes: number }>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get(key: string): V | undefined {
    const found = this.#kept.get(key)
    if (!found) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, found)
    return found.value
  }

  /** Replaces what the key has. The newest value stays, however large. */
  add(key: string, value: V, bytes: number): void {
    this.#drop(key)
    this.#kept.set(key, { value, bytes })
    this.#bytes += bytes
    for (const other of this.#kept.keys()) {
      if (this.#bytes <= this.#maxBytes || other === key) return
      this.#drop(other)
    }
  }

  /** What is gone makes room before anything that is still there. */
  dropAll(isGone: (key: string) => boolean): void {
    for (const key of this.#kept.keys()) if (isGone(key)) this.#drop(key)
  }

  #drop(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0
    this.#kept.delete(key)
  }
}
