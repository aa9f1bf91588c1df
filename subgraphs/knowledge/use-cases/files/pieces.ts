import type { BlobRecord, Piece } from '../../domain/records.ts'
import type { BlobStore } from '../../ports/blob-store.ts'

/** Bytes that are read at once. */
const READ_BYTES = 4 * 1024 * 1024

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
  let begin = 0
  for (const { key, sizeBytes } of pieces) {
    const from = Math.max(0, offset - begin)
    const to = Math.min(sizeBytes, offset + length - begin)
    begin += sizeBytes
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
 * Gives the bytes in order, at most `READ_BYTES` at a time.
 * @param lost makes the error when bytes are not there
 */
export async function* streamBlob(
  blobs: BlobStore,
  blob: Pick<BlobRecord, 'bytesKey' | 'pieces' | 'sizeBytes'>,
  lost: () => Promise<Error> | Error,
): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < blob.sizeBytes; ) {
    const bytes = await readBlob(blobs, blob, { offset, length: Math.min(READ_BYTES, blob.sizeBytes - offset) })
    if (!bytes || bytes.length === 0) throw await lost()
    offset += bytes.length
    yield bytes
  }
}
