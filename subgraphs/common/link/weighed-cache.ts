import type { DocumentNode } from 'graphql'
import { LRUCache } from 'lru-cache'

/** The part of a cache that one owner may fill, so that it does not evict the entries of others. */
const SHARE = 1 / 4

interface Entry<V> {
  readonly value: V
  readonly owner: string
}

/**
 * A cache limited by the weight of its values, in total and for each owner. The least recently used entries are evicted
 * first.
 */
export class WeighedCache<V> {
  readonly #share: number
  readonly #entries: LRUCache<string, Entry<V>>
  /** The keys of each owner. */
  readonly #parts = new Map<string, LRUCache<string, true>>()

  constructor(maxWeight: number) {
    this.#share = Math.floor(maxWeight * SHARE)
    this.#entries = new LRUCache({ maxSize: maxWeight, disposeAfter: ({ owner }, key) => this.#removed(key, owner) })
  }

  get weight(): number {
    return this.#entries.calculatedSize
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry) this.#parts.get(entry.owner)!.get(key)
    return entry?.value
  }

  /**
   * `owner`: the first one that caused the entry. A value heavier than an owner's share, or without weight, is not
   * cached.
   */
  set(key: string, value: V, weight: number, owner: string): void {
    this.delete(key)
    if (weight < 1 || weight > this.#share) return
    const part =
      this.#parts.get(owner) ??
      new LRUCache<string, true>({ maxSize: this.#share, disposeAfter: (_, other) => this.#entries.delete(other) })
    this.#parts.set(owner, part)
    part.set(key, true, { size: weight })
    this.#entries.set(key, { value, owner }, { size: weight })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  #removed(key: string, owner: string): void {
    const part = this.#parts.get(owner)
    part?.delete(key)
    if (part?.size === 0) this.#parts.delete(owner)
  }
}

/** Heap bytes of one lexical token parsed without locations: its node, names and arrays (measured: 150 to 250). */
const TOKEN_BYTES = 256

/** Returns the heap bytes of a parsed document and its text, which includes long literals. */
export function documentWeight(document: DocumentNode, text: string): number {
  return (document.tokenCount ?? 0) * TOKEN_BYTES + text.length * 2
}
