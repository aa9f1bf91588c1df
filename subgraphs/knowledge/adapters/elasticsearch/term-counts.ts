import { createHash } from 'node:crypto'

export const KINDS = ['words', 'grams'] as const
export type Kind = (typeof KINDS)[number]

/** A chunk's figures for BM25, read from the result of `encodeCounts`. */
interface TermCounts {
  /** Terms of the chunk, duplicates included. */
  readonly lengths: Readonly<Record<Kind, number>>
  /** Returns how often the term with this key occurs in the chunk. */
  of(key: number): number
}

const HEADER_BYTES = 8
const MAX_COUNT = 255

/**
 * Characters of a collection's mark, which precedes its terms in the index: 48 bits. The mark makes a term's postings
 * the collection's own, so counting them reads no other tenant's. Two collections with the same mark would only count
 * each other's chunks.
 */
const MARK_LENGTH = 8

/** Returns the mark of a collection's terms. */
export function termMark(collectionId: string): string {
  return createHash('sha256').update(collectionId).digest('base64url').slice(0, MARK_LENGTH)
}

/**
 * Initial hash values. They are far apart, so that no word collides with the 3-gram that differs from it by one bit.
 */
const SEEDS: Readonly<Record<Kind, number>> = { words: 0x811c9dc5, grams: 0x9e3779b9 }

/** FNV-1a, 32 bits. In about one of ten million pairs, another term of a chunk has the key of a query's term. */
export function termKey(kind: Kind, term: string): number {
  let hash = SEEDS[kind]
  for (let i = 0; i < term.length; i++) hash = Math.imul(hash ^ term.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/**
 * Returns base64 of both lengths, the terms' keys in ascending order (32 bits each, little-endian), and their counts (a
 * byte each, at most 255).
 */
export function encodeCounts(terms: Readonly<Record<Kind, readonly string[]>>): string {
  const counts = new Map<number, number>()
  for (const kind of KINDS) {
    for (const term of terms[kind]) {
      const key = termKey(kind, term)
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  }
  const sorted = [...counts].sort(([a], [b]) => a - b)
  const bytes = Buffer.alloc(HEADER_BYTES + sorted.length * 5)
  bytes.writeUInt32LE(terms.words.length, 0)
  bytes.writeUInt32LE(terms.grams.length, 4)
  for (const [i, [key, count]] of sorted.entries()) {
    bytes.writeUInt32LE(key, HEADER_BYTES + i * 4)
    bytes[HEADER_BYTES + sorted.length * 4 + i] = Math.min(count, MAX_COUNT)
  }
  return bytes.toString('base64')
}

export function decodeCounts(encoded: string): TermCounts {
  const bytes = Buffer.from(encoded, 'base64')
  const size = (bytes.length - HEADER_BYTES) / 5
  return {
    lengths: { words: bytes.readUInt32LE(0), grams: bytes.readUInt32LE(4) },
    of(key) {
      let low = 0
      let high = size
      while (low < high) {
        const middle = (low + high) >>> 1
        if (bytes.readUInt32LE(HEADER_BYTES + middle * 4) < key) low = middle + 1
        else high = middle
      }
      if (low === size || bytes.readUInt32LE(HEADER_BYTES + low * 4) !== key) return 0
      return bytes[HEADER_BYTES + size * 4 + low]!
    },
  }
}
