import type { DatabaseSync } from 'node:sqlite'
import { dotsWith, paddedLength } from './chunk-index-dots.ts'
import type { Tables } from './chunk-index-schema.ts'
import { Top } from './chunk-index-top.ts'

/**
 * Vectors are stored in blocks of 128 chunks, because reading a row for each would cost more than its distance. A block
 * has the lengths of its vectors (float32), then their components (int8). Each vector is scaled so that its largest
 * component is 127. The scale is not kept, because a cosine does not depend on it. A place with length 0 is free. The
 * chunk's id gives its block and place.
 */
const BLOCK = 128
const LENGTHS_BYTES = BLOCK * 4

/** Writes vectors. Null frees a place. */
export function writeVectors(
  db: DatabaseSync,
  tables: Tables,
  dimensions: number,
  vectors: ReadonlyMap<number, Float32Array | null>,
): void {
  const length = paddedLength(dimensions)
  const read = db.prepare(`SELECT data FROM ${tables.vectors} WHERE block = ?`)
  const write = db.prepare(
    `INSERT INTO ${tables.vectors} (block, data) VALUES (?, ?) ON CONFLICT (block) DO UPDATE SET data = excluded.data`,
  )
  const remove = db.prepare(`DELETE FROM ${tables.vectors} WHERE block = ?`)
  for (const [block, ofBlock] of Map.groupBy(vectors, ([id]) => Math.floor(id / BLOCK))) {
    const found = read.get(block) as { data: Uint8Array } | undefined
    const data = found ? Uint8Array.from(found.data) : new Uint8Array(LENGTHS_BYTES + BLOCK * length)
    const lengths = new Float32Array(data.buffer, 0, BLOCK)
    for (const [id, vector] of ofBlock) {
      const place = id % BLOCK
      const components = new Int8Array(data.buffer, LENGTHS_BYTES + place * length, length)
      if (vector) components.set(quantise(vector))
      else components.fill(0)
      lengths[place] = vectorLength(components)
    }
    if (lengths.some((l) => l > 0)) write.run(block, data)
    else remove.run(block)
  }
}

/** The stored vectors of these chunks: of the right direction, but another length. Chunks without one are left out. */
export function readVectors(
  db: DatabaseSync,
  tables: Tables,
  dimensions: number,
  ids: readonly number[],
): ReadonlyMap<number, Float32Array> {
  const length = paddedLength(dimensions)
  const read = db.prepare(`SELECT data FROM ${tables.vectors} WHERE block = ?`)
  const vectors = new Map<number, Float32Array>()
  for (const [block, ofBlock] of Map.groupBy(ids, (id) => Math.floor(id / BLOCK))) {
    const found = read.get(block) as { data: Uint8Array } | undefined
    if (!found) continue
    const data = Uint8Array.from(found.data)
    const lengths = new Float32Array(data.buffer, 0, BLOCK)
    for (const id of ofBlock) {
      const place = id % BLOCK
      if (lengths[place]! > 0) vectors.set(id, Float32Array.from(new Int8Array(data.buffer, LENGTHS_BYTES + place * length, dimensions)))
    }
  }
  return vectors
}

/** Cosines of another vector with these chunks, by id. Reads only their blocks. */
export function cosinesOf(db: DatabaseSync, tables: Tables, vector: Float32Array, ids: readonly number[]): ReadonlyMap<number, number> {
  const length = paddedLength(vector.length)
  const ownLength = vectorLength(vector)
  const read = db.prepare(`SELECT data FROM ${tables.vectors} WHERE block = ?`)
  const cosines = new Map<number, number>()
  for (const [block, ofBlock] of Map.groupBy(ids, (id) => Math.floor(id / BLOCK))) {
    const found = read.get(block) as { data: Uint8Array } | undefined
    if (!found) continue
    const { buffer, byteOffset } = found.data
    const lengths = new Float32Array(buffer, byteOffset, BLOCK)
    for (const id of ofBlock) {
      const place = id % BLOCK
      if (lengths[place] === 0) continue
      const components = new Int8Array(buffer, byteOffset + LENGTHS_BYTES + place * length, vector.length)
      const dot = vector.reduce((sum, x, i) => sum + x * components[i]!, 0)
      cosines.set(id, Math.max(-1, Math.min(1, dot / (lengths[place]! * ownLength))))
    }
  }
  return cosines
}

/** Cosines of a query with every chunk of a collection. */
export interface Cosines {
  /** 0 for a chunk without a vector. */
  of(id: number): number
  /** The `count` chunks with the highest cosines among those that `isEligible` accepts. */
  nearest(count: number, isEligible: (id: number) => boolean): readonly number[]
}

export function cosinesWith(db: DatabaseSync, tables: Tables, query: Float32Array): Cosines {
  const computeDots = dotsWith(query, BLOCK)
  const queryLength = vectorLength(query)
  const blocks = new Map<number, Float64Array>()
  for (const row of db.prepare(`SELECT block, data FROM ${tables.vectors}`).iterate()) {
    const { block, data } = row as { block: number; data: Uint8Array }
    const cosines = computeDots(data.subarray(LENGTHS_BYTES))
    const lengths = new Float32Array(data.buffer, data.byteOffset, BLOCK)
    for (let place = 0; place < BLOCK; place++) {
      cosines[place] = lengths[place] === 0 ? Number.NaN : Math.max(-1, Math.min(1, cosines[place]! / (lengths[place]! * queryLength)))
    }
    blocks.set(block, cosines)
  }
  return {
    of: (id) => blocks.get(Math.floor(id / BLOCK))?.[id % BLOCK] || 0,
    nearest: (count, isEligible) => nearest(blocks, count, isEligible),
  }
}

function nearest(blocks: ReadonlyMap<number, Float64Array>, count: number, isEligible: (id: number) => boolean): readonly number[] {
  const top = new Top(count)
  for (const [block, cosines] of blocks) {
    for (let place = 0; place < BLOCK; place++) {
      const id = block * BLOCK + place
      if (isEligible(id)) top.offer(id, cosines[place]!)
    }
  }
  return top.ids
}

function vectorLength(vector: Float32Array | Int8Array): number {
  let squares = 0
  for (const x of vector) squares += x * x
  return Math.sqrt(squares)
}

function quantise(vector: Float32Array): Int8Array {
  const largest = vector.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  return Int8Array.from(vector, (x) => Math.round((x / largest) * 127))
}
