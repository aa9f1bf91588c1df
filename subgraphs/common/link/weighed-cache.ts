/** No owner fills more than this part of a cache, so that none pushes out what the others have. */
const SHARE = 1 / 4

interface Entry<V> {
  readonly value: V
  readonly weight: number
  readonly owner: string
}

/** What one owner has put in, the one used longest ago first. */
interface Part {
  weight: number
  readonly keys: Set<string>
}

/** A cache that is bounded by what its values weigh, in all and by owner; what was used longest ago goes first. */
export class WeighedCache<V> {
  readonly #maxWeight: number
  readonly #entries = new Map<string, Entry<V>>()
  readonly #parts = new Map<string, Part>()
  #weight = 0

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight
  }

  /** Of all values together. */
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

  /** `owner`: who has caused it, first. What weighs more than an owner's share is not kept. */
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
