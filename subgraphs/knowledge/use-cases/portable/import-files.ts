import { createHash } from 'node:crypto'
import { type FileTaker, type RecordTaker, requireOwn, storedTaker, taker } from '../../../common/portable/organization-archive.ts'
import type { BlobRecord, Piece } from '../../domain/records.ts'
import { blobId } from '../files/blobs.ts'
import { pieceKey } from '../files/pieces.ts'
import type { KnowledgeImport } from './import-knowledge.ts'
import { BYTES, FILE, type PortableBytes } from './kinds.ts'

/** Larger contents are stored in pieces of this size, like uploads. */
const PIECE_BYTES = 4 * 1024 * 1024

/** Imports files and their shared bytes. */
export function fileTakers(to: KnowledgeImport): {
  readonly records: readonly RecordTaker[]
  readonly bytes: FileTaker
  requireAll(): void
} {
  const { store, organizationId } = to
  /** The expected next entry below `files/`. A size that only the record states could be any number. */
  let next: PortableBytes | null = null
  let arriving: PortableBytes
  const requireAll = () => {
    if (next) throw new Error(`The archive is corrupted: the bytes ${next.sha256} do not follow their record.`)
  }
  const expect = (imported: readonly PortableBytes[]) => {
    requireAll()
    if (imported.length !== 1) throw new Error(`The archive is corrupted: the bytes ${imported[0]?.sha256} do not follow their record.`)
    next = imported[0]!
  }
  return {
    records: [
      storedTaker(FILE, store.files, organizationId, (file) => ({ ...file, attachmentCount: Object.keys(file.attachments).length })),
      taker(BYTES, {
        check: async (imported) => expect(imported),
        async write(imported) {
          expect(imported)
          await requireOwn([store.files], imported[0]!.files, organizationId)
        },
      }),
    ],
    bytes: {
      folder: 'files/',
      check(name, sizeBytes) {
        if (next?.sha256 !== name || next.sizeBytes !== sizeBytes)
          throw new Error(`The archive is corrupted: no file has the bytes ${name}.`)
        arriving = next
        next = null
      },
      write: (_name, _sizeBytes, bytes) => writeBytes(to, arriving, bytes),
    },
    requireAll,
  }
}

function toBlob(organizationId: string, { sha256, sizeBytes, files }: PortableBytes): BlobRecord {
  const _id = blobId(organizationId, sha256)
  // Deterministic, so that a repeated import uses the same key, and unique to this organization.
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

/**
 * Stores the bytes, unless an interrupted import has stored them. Pieces are written in order, so the last one proves
 * that all exist.
 */
async function writeBytes({ store, blobs, organizationId }: KnowledgeImport, arriving: PortableBytes, bytes: AsyncIterable<Uint8Array>) {
  const { sha256, sizeBytes } = arriving
  await store.blobs.insertMissing([toBlob(organizationId, arriving)])
  const blob = await store.blobs.findOne({ _id: blobId(organizationId, sha256) })
  if (blob?.sizeBytes !== sizeBytes) throw new Error(`The archive is corrupted: no file has the bytes ${sha256}.`)
  const keys = blob.pieces?.map(({ key }) => key) ?? [blob.bytesKey]
  if (sizeBytes === 0 || (await blobs.get(keys.at(-1)!, { offset: 0, length: 1 }))) return
  const hash = createHash('sha256')
  const last = keys.length - 1
  let index = 0
  let waiting: Buffer = Buffer.alloc(0)
  for await (const part of bytes) {
    hash.update(part)
    waiting = Buffer.concat([waiting, part])
    for (; index < last && waiting.length >= PIECE_BYTES; index++) {
      await blobs.put(keys[index]!, waiting.subarray(0, PIECE_BYTES))
      waiting = waiting.subarray(PIECE_BYTES)
    }
  }
  if (hash.digest('hex') !== sha256) throw new Error(`The archive is corrupted: the file ${sha256} has a different SHA-256.`)
  await blobs.put(keys[last]!, waiting)
}
