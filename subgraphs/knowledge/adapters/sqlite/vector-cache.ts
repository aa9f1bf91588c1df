import type { DatabaseSync } from 'node:sqlite'
import { exactSearch, MetricKind } from 'usearch'
import type { CollectionRow, Tables } from './tables/chunk-index-schema.ts'
import { quantize } from './tables/quantize.ts'

/** Bytes of vectors that a thread caches. Those of the collection searched longest ago leave first. */
const MAX_BYTES = 192 * 2 ** 20
/** Rows of one statement. */
const PAGE = 4_096

/** All vectors of a collection, one after another, in ascending order of ids. */
class Vectors {
  readonly #dimensions: number
  #ids = new Uint32Array()
  #rows = new Int8Array()
  #count = 0
  #removals: number

  constructor({ dimensions, removals }: CollectionRow) {
    this.#dimensions = dimensions
    this.#removals = removals
  }

  get bytes(): number {
    return this.#rows.length + this.#ids.byteLength
  }

  /** Takes over what was written and deleted since. A vector never changes, and new ids are higher than all before. */
  update(db: DatabaseSync, { chunks, vectors }: Tables, { chunks: total, removals }: CollectionRow): void {
    if (removals !== this.#removals) {
      const { ids } = db.prepare(`SELECT group_concat(id) AS ids FROM ${chunks}`).get() as { ids: string | null }
      this.#retain(new Set(ids?.split(',').map(Number)))
      this.#removals = removals
    }
    if (this.#count === total) return
    const read = db.prepare(`SELECT id, data FROM ${vectors} WHERE id > ? ORDER BY id LIMIT ${PAGE}`)
    for (let rows: unknown[] = [null]; rows.length > 0; ) {
      rows = read.all(this.#ids[this.#count - 1] ?? 0)
      this.#reserve(Math.max(total, this.#count + rows.length))
      for (const { id, data } of rows as { id: number; data: Uint8Array }[]) {
        this.#rows.set(new Int8Array(data.buffer, data.byteOffset, this.#dimensions), this.#count * this.#dimensions)
        this.#ids[this.#count++] = id
      }
    }
  }

  /** What is deleted leaves the memory too. */
  #retain(ids: ReadonlySet<number>): void {
    const before = this.#count
    this.#count = 0
    for (let index = 0; index < before; index++) {
      if (!ids.has(this.#ids[index]!)) continue
      this.#ids[this.#count] = this.#ids[index]!
      this.#rows.copyWithin(this.#count++ * this.#dimensions, index * this.#dimensions, (index + 1) * this.#dimensions)
    }
    this.#rows.fill(0, this.#count * this.#dimensions)
  }

  #reserve(count: number): void {
    if (count <= this.#ids.length) return
    // So many more that a growing collection is not copied at each search.
    const size = Math.ceil(1.25 * count)
    const [ids, rows] = [new Uint32Array(size), new Int8Array(size * this.#dimensions)]
    ids.set(this.#ids)
    rows.set(this.#rows)
    this.#ids = ids
    this.#rows = rows
  }

  /** The ids of the nearest ones, found by comparing all of them, or all that are eligible. */
  nearest(query: Float32Array, count: number, eligible: ReadonlySet<number> | null): readonly number[] {
    const { ids, rows } = eligible
      ? this.#only(eligible)
      : { ids: this.#ids.subarray(0, this.#count), rows: this.#rows.subarray(0, this.#count * this.#dimensions) }
    const wanted = Math.min(count, ids.length)
    if (wanted === 0) return []
    const { keys } = exactSearch(rows, quantize(query), this.#dimensions, wanted, MetricKind.Cos, 1)
    return Array.from(keys, (index) => ids[Number(index)]!)
  }

  #only(eligible: ReadonlySet<number>): { readonly ids: Uint32Array; readonly rows: Int8Array } {
    const ids = this.#ids.subarray(0, this.#count).filter((id) => eligible.has(id))
    const rows = new Int8Array(ids.length * this.#dimensions)
    for (const [index, id] of ids.entries()) rows.set(this.#of(id)!, index * this.#dimensions)
    return { ids, rows }
  }

  /** -1 to 1; 0 for a chunk without a vector. */
  cosine(query: Float32Array, id: number): number {
    const row = this.#of(id)
    if (!row) return 0
    let [dot, squares, ownSquares] = [0, 0, 0]
    for (let i = 0; i < row.length; i++) {
      dot += row[i]! * query[i]!
      squares += row[i]! ** 2
      ownSquares += query[i]! ** 2
    }
    return squares === 0 ? 0 : Math.max(-1, Math.min(1, dot / Math.sqrt(squares * ownSquares)))
  }

  #of(id: number): Int8Array | undefined {
    let [low, high] = [0, this.#count]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#ids[middle]! < id) low = middle + 1
      else high = middle
    }
    if (low === this.#count || this.#ids[low] !== id) return undefined
    return this.#rows.subarray(low * this.#dimensions, (low + 1) * this.#dimensions)
  }
}

/** The vectors of the collections that this thread searched last. */
export class VectorCache {
  readonly #collections = new Map<number, Vectors>()

  open(db: DatabaseSync, tables: Tables, collection: CollectionRow): Vectors {
    const found = this.#collections.get(collection.key) ?? new Vectors(collection)
    this.#collections.delete(collection.key)
    this.#collections.set(collection.key, found)
    found.update(db, tables, collection)
    let bytes = this.#collections.values().reduce((sum, each) => sum + each.bytes, 0)
    for (const [key, each] of this.#collections) {
      if (bytes <= MAX_BYTES || each === found) break
      bytes -= each.bytes
      this.#collections.delete(key)
    }
    return found
  }
}
