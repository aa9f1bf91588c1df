/** The part of a cache that one owner may fill, so that it does not push out the entries of others. */
const SHARE = 1 / 4

interface Entry<V> {
  readonly value: V
  readonly weight: number
  readonly owner: string
}

/** The entries of one owner, least recently used first. */
interface Part {
  weight: number
  readonly keys: Set<string>
}

/**
 * A cache bounded by the weight of its values, in total and for each owner. The least recently used entries go first.
 */
export class WeighedCache<V> {
  readonly #maxWeight: number
  readonly #entries = new Map<string, Entry<V>>()
  readonly #parts = new Map<string, Part>()
  #weight = 0

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight
  }

  /** Total weight of all values. */
  get weight(): number {
    return this.#weight
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    const { keys } = this.#parts.get(entry.owner)!
    keys.delete(key)
    keys.add(key)
    return entry.value
  }

  /** `owner`: who caused the entry first. A value heavier than an owner's share is not kept. */
  set(key: string, value: V, weight: number, owner: string): void {
    this.delete(key)
    const share = this.#maxWeight * SHARE
    if (weight > share) return
    const part = this.#parts.get(owner) ?? { weight: 0, keys: new Set() }
    this.#parts.set(owner, part)
    this.#entries.set(key, { value, weight, owner })
    part.keys.add(key)
    part.weight += weight
    this.#weight += weight
    while (part.weight > share) this.delete(part.keys.values().next().value!)
    while (this.#weight > this.#maxWeight) this.delete(this.#entries.keys().next().value!)
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    const part = this.#parts.get(entry.owner)!
    this.#entries.delete(key)
    this.#weight -= entry.weight
    part.weight -= entry.weight
    part.keys.delete(key)
    if (part.keys.size === 0) this.#parts.delete(entry.owner)
  }
}
