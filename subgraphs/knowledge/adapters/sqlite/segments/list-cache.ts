import type { DatabaseSync } from 'node:sqlite'
import { findInPack, isLong, openList, type PostingList } from './posting-lists.ts'
import { RecentlyUsed } from './recently-used.ts'
import { packKey, type SegmentRow, type SegmentTables, TERM_BITS } from './segment-tables.ts'

/**
 * Bytes of long lists that a thread keeps: of the commonest 240 terms of a million passages. With 64 MB a search of a
 * million takes 5 % longer, with 32 MB 11 %.
 */
const MAX_BYTES = 128 * 1024 * 1024

/** Gives the list of a term in a segment; null: none of its passages has the term. */
export type FindList = (segment: number, term: number) => PostingList | null

/** Keeps long lists of one file in memory between searches. They are written once, and ids of segments are not used again. */
export class ListCache {
  readonly #kept: RecentlyUsed<PostingList>
  /** Those of the last search that read a long list. */
  #segments = ''

  constructor(maxBytes = MAX_BYTES) {
    this.#kept = new RecentlyUsed(maxBytes)
  }

  /** Finds the lists of a collection, as the transaction sees them. `segments` are all that it has. */
  open(db: DatabaseSync, { lists }: SegmentTables, segments: readonly Pick<SegmentRow, 'segment'>[]): FindList {
    const read = db.prepare(`SELECT id & ${TERM_BITS} AS first, data FROM ${lists} WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1`)
    let mayHaveGone = true
    return (segment, term) => {
      const key = `${lists} ${segment} ${term}`
      const kept = this.#kept.get(key)
      if (kept) return kept
      const row = read.get(packKey(segment, 0), packKey(segment, term)) as { first: number; data: Uint8Array } | undefined
      const found = row && findInPack(row.first, row.data, term)
      if (!found) return null
      const list = openList(found)
      if (!isLong(list.passages)) return list
      if (mayHaveGone) this.#dropGone(lists, segments)
      mayHaveGone = false
      this.#kept.add(key, list, found.length + (list.ranges?.byteLength ?? 0))
      return list
    }
  }

  #dropGone(lists: string, segments: readonly Pick<SegmentRow, 'segment'>[]): void {
    const live = new Set(segments.map(({ segment }) => `${lists} ${segment}`))
    const all = [...live].join()
    if (this.#segments === all) return
    this.#segments = all
    this.#kept.dropAll((key) => key.startsWith(`${lists} `) && !live.has(key.slice(0, key.lastIndexOf(' '))))
  }
}
