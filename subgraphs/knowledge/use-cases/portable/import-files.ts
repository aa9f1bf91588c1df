import { createHash } from 'node:crypto'
import { type FileTaker, type RecordTaker, requireOwn, storedTaker, taker } from '../../../common/portable/organization-archive.ts'
import type { BlobRecord, Piece } from '../../domain/records.ts'
import { blobId } from '../files/blobs.ts'
import { pieceKey } from '../files/pieces.ts'
import type { KnowledgeImport } from './import-knowledge.ts'
import { BYTES, FILE } from './kinds.ts'

/** Larger contents are stored in pieces of this size, as uploads are. */
const PIECE_BYTES = 4 * 1024 * 1024

/** Takes files, and the bytes that they share. */
export function fileTakers(to: KnowledgeImport): { readonly records: readonly RecordTaker[]; readonly bytes: FileTaker } {
  const { store, organizationId } = to
  return {
    records: [
      storedTaker(FILE, store.files, organizationId, (file) => ({ ...file, attachmentCount: Object.keys(file.attachments).length })),
      taker(BYTES, {
        async take(taken) {
          await requireOwn(
            [store.files],
            taken.flatMap(({ files }) => files),
            organizationId,
          )
          await store.blobs.insertMissing(taken.map(({ sha256, sizeBytes, files }) => toBlob(organizationId, sha256, sizeBytes, files)))
        },
      }),
    ],
    bytes: {
      folder: 'files/',
      check(name) {
        if (!/^[0-9a-f]{64}$/.test(name)) throw new Error(`The archive is damaged: it has a file ${name}.`)
      },
      take: (name, sizeBytes, bytes) => takeBytes(to, name, sizeBytes, bytes),
    },
  }
}

function toBlob(organizationId: string, sha256: string, sizeBytes: number, files: readonly string[]): BlobRecord {
  const _id = blobId(organizationId, sha256)
  // The same in each repetition, and of this organization only.
  const bytesKey = `file_${createHash('sha256').update(_id).digest('hex').slice(0, 32)}`
  const pieces: Piece[] = []
  for (let at = 0; at < sizeBytes; at += PIECE_BYTES)
    pieces.push({ key: pieceKey(bytesKey, String(at / PIECE_BYTES)), sizeBytes: Math.min(PIECE_BYTES, sizeBytes - at) })
  return {
    _id,
    organizationId,
    sizeBytes,
    bytesKey,
    ...(pieces.length > 1 && { pieces }),
    references: Object.fromEntries(files.map((fileId) => [fileId, 0])),
    referenceCount: files.length,
    counted: { value: sizeBytes, by: bytesKey },
    dying: false,
  }
}

/** Stores the bytes, unless an interrupted import has. The pieces come in order, so the last one says that all are there. */
async function takeBytes(
  { store, blobs, organizationId }: KnowledgeImport,
  sha256: string,
  sizeBytes: number,
  bytes: AsyncIterable<Uint8Array>,
) {
  const blob = await store.blobs.findOne({ _id: blobId(organizationId, sha256) })
  if (blob?.sizeBytes !== sizeBytes) throw new Error(`The archive is damaged: no file has the bytes ${sha256}.`)
  const keys = blob.pieces?.map(({ key }) => key) ?? [blob.bytesKey]
  if (sizeBytes === 0 || (await blobs.get(keys.at(-1)!, { offset: 0, length: 1 }))) return
  const hash = createHash('sha256')
  const last = keys.length - 1
  let place = 0
  let waiting: Buffer = Buffer.alloc(0)
  for await (const part of bytes) {
    hash.update(part)
    waiting = Buffer.concat([waiting, part])
    for (; place < last && waiting.length >= PIECE_BYTES; place++) {
      await blobs.put(keys[place]!, waiting.subarray(0, PIECE_BYTES))
      waiting = waiting.subarray(PIECE_BYTES)
    }
  }
  if (hash.digest('hex') !== sha256) throw new Error(`The archive is damaged: the file ${sha256} has another SHA-256.`)
  await blobs.put(keys[last]!, waiting)
}
