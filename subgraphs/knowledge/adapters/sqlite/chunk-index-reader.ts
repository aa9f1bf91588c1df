import { orFailure } from '../../../common/adapters/sqlite/database.ts'
import { serveWorker, workerInput } from '../../../common/process/threads/worker-rpc.ts'
import type { ChunkQuery, IndexedCollection, IndexedGeneration, StoredChunk } from '../../ports/chunk-index.ts'
import type { TokenStates } from '../../ports/inference.ts'
import type { StoredPassage } from './chunk-index-rebuild.ts'
import { draftName, findCollection, nameTables, openReader } from './chunk-index-schema.ts'
import { search } from './chunk-index-search.ts'

/** A thread that reads: searches, and chunks by id. */

const db = openReader(workerInput<{ readonly file: string }>().file)

serveWorker({
  search: (query: ChunkQuery) => inSnapshot(() => search(db, query)),
  ordinals: (collectionId: string, documentId: string, generation: string) =>
    inSnapshot(() => ordinals(collectionId, documentId, generation)),
  get: (collectionId: string, chunkIds: readonly string[]) => inSnapshot(() => get(collectionId, chunkIds)),
  tokenStates: (collectionId: string, chunkIds: readonly string[]) => inSnapshot(() => tokenStates(collectionId, chunkIds)),
  hasCollection: (collectionId: string) => inSnapshot(() => findCollection(db, collectionId) !== undefined),
  listCollections: (after: string, limit: number) => inSnapshot(() => listCollections(after, limit)),
  listGenerations: (collectionId: string, after: string, limit: number) => inSnapshot(() => listGenerations(collectionId, after, limit)),
  passages: (collectionId: string, after: number, limit: number) => inSnapshot(() => passages(collectionId, after, limit)),
  close: () => db.close(),
})

/** Everything that `run` reads is of the same state of the file. */
function inSnapshot<T>(run: () => T): T {
  return orFailure(() => {
    db.exec('BEGIN')
    try {
      return run()
    } finally {
      db.exec('ROLLBACK')
    }
  })
}

function ordinals(collectionId: string, documentId: string, generation: string): readonly number[] {
  const collection = findCollection(db, collectionId)
  if (!collection) return []
  const tables = nameTables(collection)
  const rows = db
    .prepare(
      `SELECT DISTINCT ordinal FROM ${tables.chunks}
       WHERE document = (SELECT id FROM ${tables.documents} WHERE document_id = ? AND generation = ?) ORDER BY ordinal`,
    )
    .all(documentId, generation)
  return rows.map(({ ordinal }) => Number(ordinal))
}

function get(collectionId: string, chunkIds: readonly string[]): readonly StoredChunk[] {
  const collection = findCollection(db, collectionId)
  if (!collection) return []
  const tables = nameTables(collection)
  const rows = db
    .prepare(
      `SELECT c.chunk_id AS chunkId, c.ordinal, c.text, c.heading_path AS headingPath, c.page_start AS pageStart, c.page_end AS pageEnd,
         c.char_start AS charStart, c.char_end AS charEnd, c.language, d.document_id AS documentId, d.generation
       FROM json_each(?) wanted CROSS JOIN ${tables.chunks} c ON c.chunk_id = wanted.value JOIN ${tables.documents} d ON d.id = c.document
       ORDER BY wanted.key`,
    )
    .all(JSON.stringify(chunkIds))
  return (rows as (Omit<StoredChunk, 'headingPath'> & { headingPath: string })[]).map((row) => ({
    ...row,
    headingPath: JSON.parse(row.headingPath) as string[],
    organizationId: collection.organizationId,
    collectionId,
  }))
}

function tokenStates(collectionId: string, chunkIds: readonly string[]): ReadonlyMap<string, TokenStates> {
  const collection = findCollection(db, collectionId)
  if (!collection) return new Map()
  const tables = nameTables(collection)
  const rows = db
    .prepare(
      `SELECT c.chunk_id AS chunkId, s.data FROM json_each(?) wanted
       CROSS JOIN ${tables.chunks} c ON c.chunk_id = wanted.value JOIN ${tables.tokenStates} s ON s.id = c.id`,
    )
    .all(JSON.stringify(chunkIds)) as { chunkId: string; data: Uint8Array }[]
  return new Map(rows.map(({ chunkId, data }) => [chunkId, new Int8Array(data)]))
}

function listCollections(after: string, limit: number): readonly IndexedCollection[] {
  return db
    .prepare(
      `SELECT collection_id AS collectionId, chunks FROM collections
       WHERE collection_id > ? AND chunks > 0 AND collection_id NOT GLOB '${draftName('*')}' ORDER BY collection_id LIMIT ?`,
    )
    .all(after, limit) as { collectionId: string; chunks: number }[]
}

function listGenerations(collectionId: string, after: string, limit: number): readonly IndexedGeneration[] {
  const collection = findCollection(db, collectionId)
  if (!collection) return []
  const tables = nameTables(collection)
  const rows = db
    .prepare(
      `SELECT d.document_id AS documentId, d.generation, count(DISTINCT c.ordinal) AS chunks, max(c.ordinal) AS lastOrdinal
       FROM (
         SELECT id, document_id, generation FROM ${tables.documents} d
         WHERE document_id > ? AND EXISTS (SELECT 1 FROM ${tables.chunks} WHERE document = d.id)
         ORDER BY document_id, generation LIMIT ?
       ) d CROSS JOIN ${tables.chunks} c ON c.document = d.id
       GROUP BY d.document_id, d.generation ORDER BY d.document_id, d.generation`,
    )
    .all(after, limit)
  return rows as { documentId: string; generation: string; chunks: number; lastOrdinal: number }[]
}

function passages(collectionId: string, after: number, limit: number): readonly StoredPassage[] {
  const collection = findCollection(db, collectionId)
  if (!collection) return []
  const { chunks } = nameTables(collection)
  const rows = db
    .prepare(`SELECT id, text, heading_path AS headingPath, context FROM ${chunks} WHERE id > ? ORDER BY id LIMIT ?`)
    .all(after, limit)
  return (rows as (Omit<StoredPassage, 'headingPath'> & { headingPath: string })[]).map((row) => ({
    ...row,
    headingPath: JSON.parse(row.headingPath) as string[],
  }))
}
