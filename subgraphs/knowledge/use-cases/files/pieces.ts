import type { BlobRecord, Piece } from '../../domain/records.ts'
import type { BlobStore } from '../../ports/blob-store.ts'

/**
 * Bytes that are read at once. Readers take turns at the store, so none waits long for another's piece, and each takes
 * no more memory than this. GridFS has chunks of this size.
 */
const READ_BYTES = 1024 * 1024

/** Where the pieces of an upload are: its id is their prefix. */
export function pieceKey(uploadId: string, id: string): string {
  return `${uploadId}/${id}`
}

/** Deletes every piece of an upload, those of a write that a crash has interrupted too. Repeatable. */
export async function deletePieces(blobs: BlobStore, uploadId: string): Promise<void> {
  await blobs.deleteAll(pieceKey(uploadId, ''))
}

/** Reads a range of what pieces hold together. A range that passes the end is cut. Null: a piece is not there. */
export async function readPieces(
  blobs: BlobStore,
  pieces: readonly Piece[],
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<Uint8Array | null> {
  const found: Uint8Array[] = []
  let start = 0
  for (const { key, sizeBytes } of pieces) {
    const from = Math.max(0, offset - start)
    const to = Math.min(sizeBytes, offset + length - start)
    start += sizeBytes
    if (to <= from) continue
    const bytes = await blobs.get(key, { offset: from, length: to - from })
    if (bytes?.length !== to - from) return null
    found.push(bytes)
  }
  return found.length === 1 ? found[0]! : Buffer.concat(found)
}

/** Reads a range of a blob. Null: its bytes are not there. */
export function readBlob(
  blobs: BlobStore,
  { bytesKey, pieces }: Pick<BlobRecord, 'bytesKey' | 'pieces'>,
  range?: { readonly offset: number; readonly length: number },
): Promise<Uint8Array | null> {
  if (!pieces) return blobs.get(bytesKey, range)
  return readPieces(blobs, pieces, range ?? { offset: 0, length: Number.MAX_SAFE_INTEGER })
}

/**
 * Yields the bytes of a range in order, at most `READ_BYTES` at a time. Default: all bytes.
 * @param lost creates the error for bytes that are not there
 */
export async function* streamBlob(
  blobs: BlobStore,
  blob: Pick<BlobRecord, 'bytesKey' | 'pieces' | 'sizeBytes'>,
  lost: () => Promise<Error> | Error,
  range = { offset: 0, length: blob.sizeBytes },
): AsyncGenerator<Uint8Array> {
  const end = range.offset + range.length
  for (let { offset } = range; offset < end; ) {
    const bytes = await readBlob(blobs, blob, { offset, length: Math.min(READ_BYTES, end - offset) })
    if (!bytes || bytes.length === 0) throw await lost()
    offset += bytes.length
    yield bytes
  }
}
