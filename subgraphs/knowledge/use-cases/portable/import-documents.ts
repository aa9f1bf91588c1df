import { createHash } from 'node:crypto'
import {
  type FileTaker,
  type RecordTaker,
  refuseOwnedByOthers,
  requireOwn,
  storedTaker,
  taker,
} from '../../../common/portable/organization-archive.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { documentAttributes } from '../../domain/document-attributes.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import { type CollectionRecord, type DocumentRecord, findPending, newJob } from '../../domain/records.ts'
import type { IndexedChunk } from '../../ports/chunk-index.ts'
import { linesKey, storeChunks, textKey, textMapKey } from '../chunk-index/stored-chunks.ts'
import { storeSketch } from '../documents/similar-documents.ts'
import type { KnowledgeImport } from './import-knowledge.ts'
import { CHUNKS, DOCUMENT, LINES, type PortableChunks, TEXT_MAP, UNREAD } from './kinds.ts'
import { toChunks } from './portable-chunks.ts'

/** More than the largest text of a document, 20 MiB. A text without a map is read as a whole. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024
/** The limit of the index port. */
const MAX_CHUNKS = 256

/** Imports documents with their data in the blob store and the index. */
export function documentTakers(to: KnowledgeImport): { readonly records: readonly RecordTaker[]; readonly texts: FileTaker } {
  const { store, blobs, organizationId, clock } = to
  const found = new Found(to)
  const onlyLive = async <T>(documentId: string, work: (document: Live) => Promise<T>) => {
    const document = await found.document(documentId)
    if (document.status === 'ready' && document.liveGeneration !== null)
      await work({ ...document, liveGeneration: document.liveGeneration })
  }
  const documents = storedTaker(
    DOCUMENT,
    store.documents,
    organizationId,
    (imported) => {
      const isReady = imported.status === 'ready'
      const counted = { value: isReady ? imported.chunkCount : 0, by: randomHex(32) }
      const { replacement } = imported
      const next = replacement && { ...replacement, stage: null, progress: null }
      const document: Omit<DocumentRecord, 'organizationId'> = {
        ...imported,
        ...(next !== undefined && { replacement: next }),
        ...{ listed: true, outbox: [], stage: null, progress: null, embedding: null },
        chunkCount: counted.value,
        countedVectors: counted,
        countedChunks: counted,
      }
      const isWaiting = imported.status === 'queued' || findPending(document as DocumentRecord) !== null
      return { ...document, ...(isWaiting && { job: newJob('ingest', organizationId, clock.now()) }) }
    },
    async (imported) => {
      const strange = imported.find(({ collectionId, attachKey, versionKey }) =>
        [attachKey, versionKey].some((key) => key !== undefined && !key.startsWith(`${collectionId}_`)),
      )
      if (strange) throw new Error(`The archive is corrupted: ${strange._id} has a key of another collection.`)
      await requireOwn(
        [store.collections],
        imported.map(({ collectionId }) => collectionId),
        organizationId,
      )
      await refuseOwnedByOthers(
        store.files,
        imported.flatMap(({ fileId, replacement }) => [fileId, ...(replacement ? [replacement.fileId] : [])]),
        organizationId,
      )
      await refuseOwnedByOthers(
        store.documents,
        imported.flatMap(({ parentId }) => parentId ?? []),
        organizationId,
      )
    },
  )
  return {
    records: [
      {
        ...documents,
        write: async (imported) => {
          await documents.write(imported)
          for (const { _id, collectionId, sketch } of imported as readonly DocumentRecord[])
            if (sketch !== undefined) await storeSketch({ store }, { _id, organizationId, collectionId } as DocumentRecord, sketch)
        },
      },
      taker(UNREAD, {
        async write(imported) {
          for (const { documentId } of imported) await ingestAgain(to, documentId)
          found.clear()
        },
      }),
      taker(TEXT_MAP, {
        async write(imported) {
          for (const { documentId, ...map } of imported)
            await onlyLive(documentId, ({ liveGeneration }) =>
              blobs.put(textMapKey(documentId, liveGeneration), Buffer.from(JSON.stringify(map))),
            )
        },
      }),
      taker(LINES, {
        async write(imported) {
          for (const { documentId, group, ...lines } of imported)
            await onlyLive(documentId, ({ liveGeneration }) =>
              blobs.put(linesKey(documentId, liveGeneration, group), Buffer.from(JSON.stringify(lines))),
            )
        },
      }),
      taker(CHUNKS, {
        async write(imported) {
          for (const groups of ofOneDocument(imported))
            await onlyLive(groups[0]!.documentId, (document) => importChunks(to, found, document, groups))
        },
      }),
    ],
    texts: {
      folder: 'texts/',
      check(name, sizeBytes) {
        if (!/^doc_[0-9a-f]{32}$/.test(name) || sizeBytes > MAX_TEXT_BYTES)
          throw new Error(`The archive is corrupted: it has a text ${name}.`)
      },
      async write(documentId, _sizeBytes, bytes) {
        const parts: Uint8Array[] = []
        for await (const part of bytes) parts.push(part)
        const text = Buffer.concat(parts)
        // The document may have been deleted or changed while the archive was written.
        const document = await store.documents.findOne({ _id: documentId })
        if (document?.organizationId !== organizationId || document.status !== 'ready' || document.liveGeneration === null) return
        const isOwn = document.textSha256 === undefined || document.textSha256 === createHash('sha256').update(text).digest('hex')
        if (isOwn) await blobs.put(textKey(documentId, document.liveGeneration), text)
        else await ingestAgain(to, documentId)
      },
    },
  }
}

type Live = DocumentRecord & { readonly liveGeneration: string }

/** Writes chunks like ingestion does: first to the blob store, then to the index. Nothing is embedded. */
async function importChunks(to: KnowledgeImport, found: Found, document: Live, groups: readonly PortableChunks[]): Promise<void> {
  const { blobs, index, organizationId } = to
  const { _id: documentId, liveGeneration: generation, collectionId } = document
  const collection = await found.collection(collectionId)
  const { dimensions } = collection
  const ingestion = { organizationId, collectionId: indexNameOf(collection), documentId, generation }
  const chunks: IndexedChunk[] = []
  for (const { attributes, passages: portable } of groups) {
    const some = await toChunks(portable, { documentId, generation, dimensions })
    await storeChunks({ blobs }, { ...ingestion, attributes }, some)
    chunks.push(...some)
  }
  await index.put({ ...ingestion, attributes: documentAttributes(groups[0]!.attributes, document) }, chunks)
}

/** Joins neighboring groups of one document, up to the index's limit per write. */
function ofOneDocument(imported: readonly PortableChunks[]): readonly (readonly PortableChunks[])[] {
  const runs: PortableChunks[][] = []
  let chunks = 0
  for (const group of imported) {
    const last = runs.at(-1)
    chunks += group.passages.length
    if (last?.[0]?.documentId === group.documentId && chunks <= MAX_CHUNKS) last.push(group)
    else {
      runs.push([group])
      chunks = group.passages.length
    }
  }
  return runs
}

/** Queues a document without imported chunks for ingestion, like after an upload. Can be repeated. */
async function ingestAgain({ store, clock, organizationId }: KnowledgeImport, _id: string): Promise<void> {
  const nothing = { value: 0, by: randomHex(32) }
  await store.documents.findOneAndUpdate(
    { _id, organizationId, status: 'ready' },
    {
      $set: {
        status: 'queued',
        chunkCount: 0,
        countedVectors: nothing,
        countedChunks: nothing,
        job: { ...newJob('ingest', organizationId, clock.now()) },
      },
      $inc: { generation: 1 },
    },
  )
}

/** Caches the imported records that were looked up last, because the entries of one document are adjacent. */
class Found {
  readonly #to: KnowledgeImport
  readonly #collections = new Map<string, CollectionRecord>()
  #document: DocumentRecord | undefined

  constructor(to: KnowledgeImport) {
    this.#to = to
  }

  clear(): void {
    this.#document = undefined
  }

  async document(_id: string): Promise<DocumentRecord> {
    if (this.#document?._id !== _id) this.#document = this.#own(await this.#to.store.documents.findOne({ _id }), _id)
    return this.#document
  }

  async collection(_id: string): Promise<CollectionRecord> {
    let collection = this.#collections.get(_id)
    if (!collection) {
      collection = this.#own(await this.#to.store.collections.findOne({ _id }), _id)
      this.#collections.set(_id, collection)
    }
    return collection
  }

  #own<T extends { readonly organizationId: string }>(record: T | null, id: string): T {
    if (record?.organizationId !== this.#to.organizationId)
      throw new Error(`The archive is corrupted: it has records of ${id}, but not ${id} itself.`)
    return record
  }
}
