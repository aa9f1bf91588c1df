import { BlobCorrupted, type BlobEntry } from '../../ports/blob-store.ts'
import { PIECE_BYTES } from './blob-file.ts'

/**
 * One statement, so that all rows belong to the same state of the file. A blob without pieces in the range gives one
 * row without bytes.
 */
const SELECT = `
  SELECT size, position, bytes FROM blob LEFT JOIN piece ON piece.blob = blob.number AND position BETWEEN ? AND ?
  WHERE key = ? ORDER BY position`
type Row = readonly [size: number, position: number | null, bytes: Uint8Array<ArrayBuffer> | null]

/** The keys after one, in order. */
export const LIST = 'SELECT key, size FROM blob WHERE key > ? ORDER BY key LIMIT ?'

export const toEntries = (rows: readonly (readonly [string, number])[]): readonly BlobEntry[] =>
  rows.map(([key, sizeBytes]) => ({ key, sizeBytes }))

/** Runs a statement whose rows are arrays. */
export type ReadRows = (text: string, parameters: readonly (string | number)[]) => readonly Row[]

/**
 * Reads a range of a blob; null: there is none with the key.
 * @throws {BlobCorrupted} parts of it are lost
 */
export function readBlob(rowsOf: ReadRows, key: string, offset: number, length: number): Uint8Array<ArrayBuffer> | null {
  const first = Math.floor(offset / PIECE_BYTES)
  const last = Math.floor((offset + length - 1) / PIECE_BYTES)
  const rows = rowsOf(SELECT, [first, last, key])
  const [found] = rows
  if (!found) return null
  const [size] = found
  // Every byte is written below, or nothing is returned.
  const bytes = new Uint8Array(Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, size - offset))).buffer)
  let filled = 0
  for (const [, position, piece] of rows) {
    if (position === null || piece === null) continue
    const from = position * PIECE_BYTES - offset
    const part = piece.subarray(Math.max(0, -from), bytes.length - from)
    bytes.set(part, Math.max(0, from))
    filled += part.length
    // The row's memory is free at once, without a collection.
    piece.buffer.transfer(0)
  }
  if (filled !== bytes.length) throw new BlobCorrupted(key)
  return bytes
}
