import { DamageReader } from '../../../common/adapters/sqlite/damage-at-start.ts'
import { orFailure } from '../../../common/adapters/sqlite/database.ts'
import { Eraser } from '../../../common/adapters/sqlite/eraser.ts'
import { serveWorkerInBatches, workerInput } from '../../../common/process/threads/worker-rpc.ts'
import { MAX_STATES_BYTES } from '../../domain/search/max-sim.ts'
import type { IndexedCollection, IndexedDocument } from '../../ports/chunk-index.ts'
import { decodeCounts, encodeCounts } from './chunk-index-counts.ts'
import { replaceEarlierTables } from './chunk-index-earlier.ts'
import { type PackedChunk, unpackTerms } from './chunk-index-packing.ts'
import type { DraftPlace, RemadePassage } from './chunk-index-rebuild.ts'
import { refuse } from './chunk-index-refusal.ts'
import {
  type CollectionRow,
  createTables,
  draftName,
  dropCollectionRow,
  findCollection,
  INDEX_VERSION,
  nameTables,
  nextCollection,
  openWriter,
  type Tables,
} from './chunk-index-schema.ts'
import type { Leg } from './segments/lexical-leg.ts'
import { addSegment, bury, type SegmentPassage, tidySegments } from './segments/segment-writer.ts'
import { vectorReader, writeVectors } from './segments/vectors.ts'

/**
 * The thread that writes. Calls that arrive together share one transaction and its flush to disk. A call that fails is
 * rolled back alone.
 */

/** Calls of one transaction, so that none waits long for the others. A full `put` takes about 100 ms. */
const MAX_CALLS = 8

const { file } = workerInput<{ readonly file: string }>()
const db = openWriter(file)
const damage = new DamageReader(file)
const eraser = new Eraser(db)
let isClosing = false

serveWorkerInBatches(
  {
    createCollection: undoable(createCollection),
    dropCollection: undoable(dropCollection),
    put: undoable(put),
    setAttributes: undoable(setAttributes),
    deleteDocument: undoable(deleteDocument),
    deleteGeneration: undoable(deleteGeneration),
    beginDraft: undoable(beginDraft),
    continueDraft: undoable(continueDraft),
    replaceEarlierTables: undoable(() => replaceEarlierTables(db)),
    organizations: undoable(organizations),
    listCollections: undoable(listCollections),
    /** Answered once the tables exist. Rewrites what exists: only a write shows that the disk is full. */
    ping: () => orFailure(() => db.exec(`PRAGMA user_version=${INDEX_VERSION}`)),
    close: () => {
      isClosing = true
    },
    ...damage.handlers,
  },
  (run) =>
    orFailure(() => {
      db.exec('BEGIN IMMEDIATE')
      try {
        run()
        db.exec('COMMIT')
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      } finally {
        if (isClosing) {
          eraser[Symbol.dispose]()
          damage[Symbol.dispose]()
          db.close()
        }
      }
    }),
  MAX_CALLS,
)

function undoable<A extends unknown[], T>(run: (...args: A) => T): (...args: A) => T {
  return (...args) =>
    orFailure(() => {
      db.exec('SAVEPOINT call')
      try {
        return run(...args)
      } catch (error) {
        // A full disk ends the whole transaction by itself, and then there is no savepoint.
        if (db.isTransaction) db.exec('ROLLBACK TO call')
        throw error
      } finally {
        if (db.isTransaction) db.exec('RELEASE call')
      }
    })
}

function createCollection(organizationId: string, collectionId: string, dimensions: number): void {
  const found = findCollection(db, collectionId)
  if (found) {
    if (found.dimensions === dimensions && found.organizationId === organizationId) return
    refuse('invalid_request', `Collection ${collectionId} exists with ${found.dimensions} dimensions.`)
  }
  makeCollection(organizationId, collectionId, dimensions)
}

function makeCollection(organizationId: string, collectionId: string, dimensions: number): number {
  const { lastInsertRowid } = db
    .prepare('INSERT INTO collections (collection_id, organization_id, dimensions) VALUES (?, ?, ?)')
    .run(collectionId, organizationId, dimensions)
  const key = Number(lastInsertRowid)
  createTables(db, nameTables({ key }))
  return key
}

function dropCollection(collectionId: string): void {
  for (const collection of withDraft(collectionId)) dropCollectionRow(db, collection)
  eraser.deleted()
}

/** The organizations of all collections, by the collection's id. */
function organizations(): ReadonlyMap<string, string> {
  const rows = db.prepare('SELECT collection_id, organization_id FROM collections')
  rows.setReturnArrays(true)
  // Node's types do not follow `setReturnArrays`.
  return new Map(rows.all() as unknown as [string, string][])
}

function listCollections(after: string, limit: number): readonly IndexedCollection[] {
  return db
    .prepare(
      `SELECT collection_id AS collectionId, chunks FROM collections
       WHERE collection_id > ? AND chunks > 0 AND collection_id NOT GLOB '${draftName('*')}' ORDER BY collection_id LIMIT ?`,
    )
    .all(after, limit) as { collectionId: string; chunks: number }[]
}

/** The collection and, while it is rebuilt, its draft. Both take every write. */
function withDraft(collectionId: string): readonly CollectionRow[] {
  return [collectionId, draftName(collectionId)].flatMap((id) => findCollection(db, id) ?? [])
}

function put(document: IndexedDocument, chunks: readonly PackedChunk[]): void {
  const [collection, ...drafts] = withDraft(document.collectionId)
  if (!collection || collection.organizationId !== document.organizationId) {
    refuse('not_found', `The index has no collection ${document.collectionId}.`)
  }
  for (const chunk of chunks) {
    checkVector(chunk, collection.dimensions)
    checkTokenStates(chunk)
  }
  for (const target of [collection, ...drafts]) putInto(target, document, chunks)
}

function putInto(
  collection: CollectionRow,
  document: Pick<IndexedDocument, 'documentId' | 'generation' | 'attributes'>,
  chunks: readonly PackedChunk[],
): void {
  const tables = nameTables(collection)
  const documentKey = putDocument(tables, document)
  // Of equal ids the last wins, as with one call after another.
  const distinct = [...new Map(chunks.map((chunk) => [chunk.chunkId, chunk])).values()]
  const find = db.prepare(`SELECT id FROM ${tables.chunks} WHERE chunk_id = ?`)
  const replaced = distinct.flatMap((chunk) => (find.get(chunk.chunkId) as { id: number } | undefined)?.id ?? [])
  removeTerms(tables, collection, replaced)

  const terms = distinct.map((chunk) => ({ words: countTerms('w', chunk.words), grams: countTerms('g', chunk.grams) }))
  const termIds = addTerms(
    tables,
    terms.flatMap(({ words, grams }) => [...words.counts.keys(), ...grams.counts.keys()]),
  )
  const write = db.prepare(`
    INSERT INTO ${tables.chunks}
      (chunk_id, document, ordinal, language, page_start, page_end, char_start, char_end, words, grams, counts, heading_path, text, context)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (chunk_id) DO UPDATE SET document = excluded.document, ordinal = excluded.ordinal, language = excluded.language,
      page_start = excluded.page_start, page_end = excluded.page_end, char_start = excluded.char_start, char_end = excluded.char_end,
      words = excluded.words, grams = excluded.grams, counts = excluded.counts, heading_path = excluded.heading_path, text = excluded.text,
      context = excluded.context
    RETURNING id`)
  const forgetStates = db.prepare(`DELETE FROM ${tables.tokenStates} WHERE id = ?`)
  const keepStates = db.prepare(`INSERT INTO ${tables.tokenStates} (id, data) VALUES (?, ?)`)
  const vectors = new Map<number, Float32Array>()
  const passages: SegmentPassage[] = []
  for (const [i, chunk] of distinct.entries()) {
    const { words, grams } = terms[i]!
    const counts = new Map([...words.counts, ...grams.counts].map(([term, count]) => [termIds.get(term)!, count]))
    const { id } = write.get(
      chunk.chunkId,
      documentKey,
      chunk.ordinal,
      chunk.language,
      chunk.pageStart,
      chunk.pageEnd,
      chunk.charStart,
      chunk.charEnd,
      words.length,
      grams.length,
      encodeCounts(counts),
      JSON.stringify(chunk.headingPath),
      chunk.text,
      chunk.context,
    ) as { id: number }
    passages.push({ id, words: words.length, grams: grams.length, counts })
    vectors.set(id, chunk.vector)
    forgetStates.run(id)
    if (chunk.tokenStates) keepStates.run(id, chunk.tokenStates)
  }
  writeVectors(db, tables, vectors)
  addSegment(db, tables, collection.dimensions, passages, (id) => vectors.get(id)!)
  tidy(tables, collection)
  addToTotals(
    collection.key,
    distinct.length,
    terms.reduce((sum, { words }) => sum + words.length, 0),
    terms.reduce((sum, { grams }) => sum + grams.length, 0),
  )
}

function tidy(tables: Tables, { dimensions }: CollectionRow): void {
  const vectorOf = vectorReader(db, tables, dimensions)
  tidySegments(db, tables, dimensions, vectorOf)
}

function setAttributes({ collectionId, documentId, generation, attributes }: IndexedDocument): void {
  for (const collection of withDraft(collectionId)) {
    const { documents } = nameTables(collection)
    db.prepare(`UPDATE ${documents} SET attributes = ? WHERE document_id = ? AND generation = ?`).run(
      JSON.stringify(attributes),
      documentId,
      generation,
    )
  }
}

function deleteDocument(collectionId: string, documentId: string, keepGeneration: string | null): void {
  deleteWhere(collectionId, 'document_id = ? AND generation IS NOT ?', [documentId, keepGeneration])
}

function deleteGeneration(collectionId: string, documentId: string, generation: string): void {
  deleteWhere(collectionId, 'document_id = ? AND generation = ?', [documentId, generation])
}

/** Deletes the chunks of the ingestions that the condition selects, and their rows. */
function deleteWhere(collectionId: string, condition: string, parameters: readonly (string | null)[]): void {
  for (const collection of withDraft(collectionId)) deleteFrom(collection, condition, parameters)
}

function deleteFrom(collection: CollectionRow, condition: string, parameters: readonly (string | null)[]): void {
  const tables = nameTables(collection)
  const dead = `SELECT id FROM ${tables.documents} WHERE ${condition}`
  const chunks = db.prepare(`SELECT id FROM ${tables.chunks} WHERE document IN (${dead})`).all(...parameters) as { id: number }[]
  const ids = chunks.map(({ id }) => id)
  removeTerms(tables, collection, ids)
  for (const table of [tables.vectors, tables.tokenStates, tables.chunks]) {
    const remove = db.prepare(`DELETE FROM ${table} WHERE id = ?`)
    for (const id of ids) remove.run(id)
  }
  db.prepare(`DELETE FROM ${tables.documents} WHERE ${condition}`).run(...parameters)
  tidy(tables, collection)
  eraser.deleted()
}

/** Begins to rebuild the first collection after `after`; null when there is none. */
function beginDraft(after: string): DraftPlace | null {
  const collectionId = nextCollection(db, after)
  return collectionId === undefined ? null : newDraft(collectionId)
}

function newDraft(collectionId: string): DraftPlace {
  const { organizationId, dimensions } = findCollection(db, collectionId)!
  const found = findCollection(db, draftName(collectionId))
  if (found) dropCollectionRow(db, found)
  return { collectionId, key: makeCollection(organizationId, draftName(collectionId), dimensions), after: 0 }
}

/**
 * Takes passages over into the draft, with their new terms. After the last ones the draft replaces the collection.
 * Gives the place to continue, or null after the last collection.
 */
function continueDraft({ collectionId, key }: DraftPlace, passages: readonly RemadePassage[], isLast: boolean): DraftPlace | null {
  const collection = findCollection(db, collectionId)
  const draft = findCollection(db, draftName(collectionId))
  // Another rebuild has this collection, or it was deleted.
  if (!collection || (draft && draft.key !== key)) return beginDraft(collectionId)
  // Finished by another rebuild, or lost with the process that began it.
  if (!draft) return newDraft(collectionId)
  takeOver(collection, draft, passages)
  if (!isLast) return { collectionId, key, after: passages.at(-1)!.id }
  dropCollectionRow(db, collection)
  eraser.deleted()
  db.prepare('UPDATE collections SET collection_id = ? WHERE key = ?').run(collectionId, key)
  return beginDraft(collectionId)
}

function takeOver(collection: CollectionRow, draft: CollectionRow, passages: readonly RemadePassage[]): void {
  const tables = nameTables(collection)
  const isThere = db.prepare(`SELECT 1 FROM ${nameTables(draft).chunks} WHERE chunk_id = ?`)
  const find = db.prepare(
    `SELECT c.chunk_id AS chunkId, c.ordinal, c.text, c.heading_path AS headingPath, c.page_start AS pageStart, c.page_end AS pageEnd,
       c.char_start AS charStart, c.char_end AS charEnd, c.language, c.context, s.data AS tokenStates, d.document_id AS documentId, d.generation, d.attributes
     FROM ${tables.chunks} c JOIN ${tables.documents} d ON d.id = c.document LEFT JOIN ${tables.tokenStates} s ON s.id = c.id
     WHERE c.id = ?`,
  )
  const vectorOf = vectorReader(db, tables, collection.dimensions)
  const taken = passages.flatMap(({ id, ...terms }) => {
    const row = find.get(id) as
      | (Omit<PackedChunk, 'headingPath' | 'vector' | 'tokenStates'> & { readonly tokenStates: Uint8Array | null } & Record<
            'headingPath' | 'documentId' | 'generation' | 'attributes',
            string
          >)
      | undefined
    const vector = vectorOf(id)
    // Deleted meanwhile, or written since the draft was begun. A chunk without a vector is useless; `kis verify`
    // reports it as missing.
    if (!row || !vector || isThere.get(row.chunkId)) return []
    const tokenStates = row.tokenStates && new Int8Array(row.tokenStates)
    return [{ ...row, ...terms, vector, tokenStates, headingPath: JSON.parse(row.headingPath) as string[] }]
  })
  for (const chunks of Map.groupBy(taken, ({ documentId, generation }) => `${documentId} ${generation}`).values()) {
    const { documentId, generation, attributes } = chunks[0]!
    putInto(draft, { documentId, generation, attributes: JSON.parse(attributes) as IndexedDocument['attributes'] }, chunks)
  }
}

function checkVector({ vector, chunkId }: PackedChunk, dimensions: number): void {
  if (vector.length !== dimensions) {
    refuse('invalid_request', `The vector of chunk ${chunkId} has ${vector.length} components; the collection's have ${dimensions}.`)
  }
  if (!vector.every(Number.isFinite))
    refuse('invalid_request', `The vector of chunk ${chunkId} has a component that is not a finite number.`)
  if (vector.every((x) => x === 0)) refuse('invalid_request', `The vector of chunk ${chunkId} is zero, so it has no direction.`)
}

function checkTokenStates({ tokenStates, chunkId }: PackedChunk): void {
  if (tokenStates && tokenStates.length > MAX_STATES_BYTES)
    refuse(
      'invalid_request',
      `The token states of chunk ${chunkId} have ${tokenStates.length} bytes; at most ${MAX_STATES_BYTES} are kept.`,
    )
}

function putDocument(
  tables: Tables,
  { documentId, generation, attributes }: Pick<IndexedDocument, 'documentId' | 'generation' | 'attributes'>,
): number {
  const row = db
    .prepare(
      `INSERT INTO ${tables.documents} (document_id, generation, attributes) VALUES (?, ?, ?)
       ON CONFLICT (document_id, generation) DO UPDATE SET attributes = excluded.attributes RETURNING id`,
    )
    .get(documentId, generation, JSON.stringify(attributes))
  return (row as { id: number }).id
}

function countTerms(leg: Leg, packed: string): { readonly counts: ReadonlyMap<string, number>; readonly length: number } {
  const all = unpackTerms(packed)
  const counts = new Map<string, number>()
  for (const term of all) counts.set(leg + term, (counts.get(leg + term) ?? 0) + 1)
  return { counts, length: all.length }
}

/** Counts each occurrence as one more chunk with the term. Gives the terms' ids. */
function addTerms(tables: Tables, terms: readonly string[]): ReadonlyMap<string, number> {
  const chunks = new Map<string, number>()
  for (const term of terms) chunks.set(term, (chunks.get(term) ?? 0) + 1)
  const add = db.prepare(
    `INSERT INTO ${tables.terms} (term, chunks) VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET chunks = chunks + excluded.chunks RETURNING id`,
  )
  return new Map([...chunks].map(([term, count]) => [term, (add.get(term, count) as { id: number }).id]))
}

/** Removes chunks from their segments, the terms and the totals. The caller removes their rows and vectors. */
function removeTerms(tables: Tables, { key, dimensions }: CollectionRow, ids: readonly number[]): void {
  bury(db, tables, dimensions, ids)
  const read = db.prepare(`SELECT words, grams, counts FROM ${tables.chunks} WHERE id = ?`)
  const chunksOfTerm = new Map<number, number>()
  let words = 0
  let grams = 0
  for (const id of ids) {
    const row = read.get(id) as { words: number; grams: number; counts: Uint8Array }
    words += row.words
    grams += row.grams
    const counts = decodeCounts(row.counts)
    for (let at = 0; at < counts.length; at += 2) chunksOfTerm.set(counts[at]!, (chunksOfTerm.get(counts[at]!) ?? 0) + 1)
  }
  const subtract = db.prepare(`UPDATE ${tables.terms} SET chunks = chunks - ? WHERE id = ? RETURNING chunks`)
  const remove = db.prepare(`DELETE FROM ${tables.terms} WHERE id = ?`)
  for (const [term, count] of chunksOfTerm) {
    const { chunks } = subtract.get(count, term) as { chunks: number }
    if (chunks === 0) remove.run(term)
  }
  addToTotals(key, -ids.length, -words, -grams)
}

function addToTotals(key: CollectionRow['key'], chunks: number, words: number, grams: number): void {
  db.prepare('UPDATE collections SET chunks = chunks + ?, words = words + ?, grams = grams + ? WHERE key = ?').run(
    chunks,
    words,
    grams,
    key,
  )
}
