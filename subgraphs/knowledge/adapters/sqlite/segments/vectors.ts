import type { DatabaseSync } from 'node:sqlite'
import type { Tables } from '../chunk-index-schema.ts'
import { aligned, dotsWith, type Kernels } from './kernels.ts'

/**
 * A vector's row has its length (float32) and its components (int8), scaled so that the largest is 127. The scale is not
 * kept, because a cosine does not depend on it.
 */
const LENGTH_BYTES = 4
const MAX_INT8 = 127

/** Writes or replaces vectors by the ids of their chunks. */
export function writeVectors(db: DatabaseSync, tables: Tables, vectors: ReadonlyMap<number, Float32Array>): void {
  const write = db.prepare(`INSERT INTO ${tables.vectors} (id, data) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data`)
  for (const [id, vector] of vectors) write.run(id, packVector(quantise(vector)))
}

export function packVector(components: Int8Array): Uint8Array {
  const data = new Uint8Array(LENGTH_BYTES + aligned(components.length))
  new Int8Array(data.buffer).set(components, LENGTH_BYTES)
  new DataView(data.buffer).setFloat32(0, vectorLength(components), true)
  return data
}

/** Reads vectors by the ids of their chunks: of the right direction, but another length. Null: it has no direction. */
export function vectorReader(db: DatabaseSync, tables: Tables, dimensions: number): (id: number) => Float32Array | null {
  const read = db.prepare(`SELECT data FROM ${tables.vectors} WHERE id = ?`)
  return (id) => {
    const row = read.get(id) as { data: Uint8Array } | undefined
    if (!row || readLength(row.data) === 0) return null
    return Float32Array.from(new Int8Array(row.data.buffer, row.data.byteOffset + LENGTH_BYTES, dimensions))
  }
}

/** Cosines of a vector with these chunks, by id. Chunks without a vector of its dimensions are left out. */
export function cosinesOf(
  db: DatabaseSync,
  tables: Tables,
  kernels: Kernels,
  query: Float32Array,
  ids: readonly number[],
): ReadonlyMap<number, number> {
  const bytes = LENGTH_BYTES + aligned(query.length)
  // One statement for all, in the order of the file, and one value: a call for each takes three times as long. As text,
  // which `group_concat` takes them for, bytes stay what they are.
  const found = db
    .prepare(
      `SELECT group_concat(v.id) AS ids, CAST(group_concat(v.data, '') AS BLOB) AS rows
       FROM json_each(?) wanted CROSS JOIN ${tables.vectors} v ON v.id = wanted.value WHERE length(v.data) = ?`,
    )
    .get(`[${Uint32Array.from(ids).sort().join()}]`, bytes) as { ids: string | null; rows: Uint8Array | null }
  if (!found.ids || !found.rows) return new Map()
  const { buffer, byteOffset } = found.rows
  const lengths = new DataView(buffer, byteOffset)
  const dots = dotsWith(kernels, query, found.rows, LENGTH_BYTES)
  const ownLength = vectorLength(query)
  const cosines = new Map<number, number>()
  for (const [i, id] of found.ids.split(',').entries()) {
    const length = lengths.getFloat32(i * bytes, true)
    if (length > 0) cosines.set(Number(id), Math.max(-1, Math.min(1, dots[i]! / (length * ownLength))))
  }
  return cosines
}

function readLength({ buffer, byteOffset }: Uint8Array): number {
  return new DataView(buffer, byteOffset).getFloat32(0, true)
}

function vectorLength(vector: Float32Array | Int8Array): number {
  let squares = 0
  for (const x of vector) squares += x * x
  return Math.sqrt(squares)
}

function quantise(vector: Float32Array): Int8Array {
  const largest = vector.reduce((max, x) => Math.max(max, Math.abs(x)), 0)
  return Int8Array.from(vector, (x) => Math.round((x / largest) * MAX_INT8))
}
