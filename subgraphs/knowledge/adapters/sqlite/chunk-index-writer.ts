import { findCorruptionAtStart } from '../../../common/adapters/sqlite/corruption-at-start.ts'
import { orFailure } from '../../../common/adapters/sqlite/database.ts'
import { Eraser } from '../../../common/adapters/sqlite/eraser.ts'
import { servingFiles } from '../../../common/process/threads/thread-calls.ts'
import { MAX_TOKEN_EMBEDDINGS_BYTES } from '../../domain/search/max-sim.ts'
import type { IndexedCollection, IndexedDocument } from '../../ports/chunk-index.ts'
import { type PackedChunk, unpackTerms } from './chunk-index-packing.ts'
import type { DraftCursor, RebuiltChunk } from './chunk-index-rebuild.ts'
import { refuse } from './chunk-index-refusal.ts'
import { encodeCounts, readCounts } from './tables/chunk-index-counts.ts'
import { rebuildEarlier } from './tables/chunk-index-earlier.ts'
import {
  createPostings,
  type EncodedChunk,
  readWordIds,
  removePostings,
  SMALL_COLLECTION,
  writePostings,
} from './tables/chunk-index-postings.ts'
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
} from './tables/chunk-index-schema.ts'
import { quantize } from './tables/quantize.ts'

/**
 * The thread that writes. Concurrent calls share one transaction and its flush to disk. A failing call is rolled back
 * alone.
 */

/** Maximum calls per transaction, so that none waits long for the others. A full `put` takes about 100 ms. */
const MAX_CALLS = 8

export const call = servingFiles((file) => {
  const db = openWriter(file)
  const eraser = new Eraser(db)

  function undoable<A extends unknown[], T>(run: (...args: A) => T): (...args: A) => T {
    return (...args) =>
      orFailure(() => {
        db.exec('SAVEPOINT call')
        try {
          return run(...args)
        } catch (error) {
          // A full disk aborts the whole transaction, and then there is no savepoint.
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
    insertCollection(organizationId, collectionId, dimensions)
  }

  function insertCollection(organizationId: string, collectionId: string, dimensions: number): number {
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

  /** Returns the organization of each collection by the collection's ID. */
  function organizations(): ReadonlyMap<string, string> {
    const rows = db.prepare('SELECT collection_id, organization_id FROM collections')
    rows.setReturnArrays(true)
    // Node's types do not reflect `setReturnArrays`.
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

  /** Returns the collection and, while it is rebuilt, its draft. Both get every write. */
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
      checkTokenEmbeddings(chunk)
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
    // Of equal IDs the last wins, as with sequential calls.
    const distinct = [...new Map(chunks.map((chunk) => [chunk.chunkId, chunk])).values()]
    const find = db.prepare(`SELECT id FROM ${tables.chunks} WHERE chunk_id = ?`)
    removeChunks(
      tables,
      collection.key,
      distinct.flatMap((chunk) => (find.get(chunk.chunkId) as { id: number } | undefined)?.id ?? []),
    )

    const terms = distinct.map((chunk) => ({ words: unpackTerms(chunk.words), grams: unpackTerms(chunk.grams) }))
    const counted = terms.map(({ words, grams }) => countTerms([...words.map((word) => `w${word}`), ...grams.map((gram) => `g${gram}`)]))
    const termIds = addTerms(tables, counted)
    const write = db.prepare(`
      INSERT INTO ${tables.chunks}
        (id, chunk_id, document, ordinal, language, page_start, page_end, char_start, char_end, words, grams, counts, heading_path, text, context)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    const writeVector = db.prepare(`INSERT INTO ${tables.vectors} (id, data) VALUES (?, ?)`)
    const writeTokenEmbeddings = db.prepare(`INSERT INTO ${tables.tokenEmbeddings} (id, data) VALUES (?, ?)`)
    const written: EncodedChunk[] = []
    let id = allocateIds(collection.key, distinct.length)
    for (const [i, chunk] of distinct.entries()) {
      const counts = encodeCounts(new Map([...counted[i]!].map(([term, count]) => [termIds.get(term)!, count])))
      write.run(
        id,
        chunk.chunkId,
        documentKey,
        chunk.ordinal,
        chunk.language,
        chunk.pageStart,
        chunk.pageEnd,
        chunk.charStart,
        chunk.charEnd,
        terms[i]!.words.length,
        terms[i]!.grams.length,
        counts,
        JSON.stringify(chunk.headingPath),
        chunk.text,
        chunk.context,
      )
      written.push({ id, counts })
      writeVector.run(id, quantize(chunk.vector))
      if (chunk.tokenStates) writeTokenEmbeddings.run(id, chunk.tokenStates)
      id++
    }
    const now = addToTotals(
      collection.key,
      distinct.length,
      terms.reduce((sum, { words }) => sum + words.length, 0),
      terms.reduce((sum, { grams }) => sum + grams.length, 0),
    )
    if (now.hasPostings) writePostings(db, tables, written, new Set([...termIds].flatMap(([term, id]) => (isWord(term) ? [id] : []))))
    else if (now.chunks > SMALL_COLLECTION) {
      createPostings(db, tables, collection.key)
      const all = db.prepare(`SELECT id, counts FROM ${tables.chunks}`).all() as unknown as EncodedChunk[]
      writePostings(db, tables, all, readWordIds(db, tables))
    }
  }

  /** Allocates `count` IDs that no chunk of the collection has had, and returns the first. */
  function allocateIds(key: CollectionRow['key'], count: number): number {
    const { lastId } = db
      .prepare('UPDATE collections SET last_id = last_id + ? WHERE key = ? RETURNING last_id AS lastId')
      .get(count, key) as {
      lastId: number
    }
    return lastId - count + 1
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

  function deleteDocument(collectionId: string, documentId: string, exceptGeneration: string | null): void {
    deleteWhere(collectionId, 'document_id = ? AND generation IS NOT ?', [documentId, exceptGeneration])
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
    removeChunks(
      tables,
      collection.key,
      chunks.map(({ id }) => id),
    )
    db.prepare(`DELETE FROM ${tables.documents} WHERE ${condition}`).run(...parameters)
  }

  /** Starts to rebuild the first collection after `after`. Null: there is none. */
  function startDraft(after: string): DraftCursor | null {
    const collectionId = nextCollection(db, after)
    return collectionId === undefined ? null : newDraft(collectionId)
  }

  function newDraft(collectionId: string): DraftCursor {
    const { organizationId, dimensions } = findCollection(db, collectionId)!
    const found = findCollection(db, draftName(collectionId))
    if (found) dropCollectionRow(db, found)
    return { collectionId, key: insertCollection(organizationId, draftName(collectionId), dimensions), after: 0 }
  }

  /**
   * Copies chunks with their new terms to the draft. After the last chunks, the draft replaces the collection. Returns
   * the cursor to continue from, or null after the last collection.
   */
  function continueDraft({ collectionId, key }: DraftCursor, rebuilt: readonly RebuiltChunk[], isLast: boolean): DraftCursor | null {
    const collection = findCollection(db, collectionId)
    const draft = findCollection(db, draftName(collectionId))
    // Another rebuild handles this collection, or it was deleted.
    if (!collection || (draft && draft.key !== key)) return startDraft(collectionId)
    // Another rebuild has finished the draft, or the process that started it died.
    if (!draft) return newDraft(collectionId)
    copyIntoDraft(collection, draft, rebuilt)
    if (!isLast) return { collectionId, key, after: rebuilt.at(-1)!.id }
    dropCollectionRow(db, collection)
    eraser.deleted()
    db.prepare('UPDATE collections SET collection_id = ? WHERE key = ?').run(collectionId, key)
    return startDraft(collectionId)
  }

  function copyIntoDraft(collection: CollectionRow, draft: CollectionRow, rebuilt: readonly RebuiltChunk[]): void {
    const tables = nameTables(collection)
    const isThere = db.prepare(`SELECT 1 FROM ${nameTables(draft).chunks} WHERE chunk_id = ?`)
    const find = db.prepare(
      `SELECT c.chunk_id AS chunkId, c.ordinal, c.text, c.heading_path AS headingPath, c.page_start AS pageStart, c.page_end AS pageEnd,
         c.char_start AS charStart, c.char_end AS charEnd, c.language, c.context, s.data AS tokenStates, d.document_id AS documentId, d.generation, d.attributes
       FROM ${tables.chunks} c JOIN ${tables.documents} d ON d.id = c.document LEFT JOIN ${tables.tokenEmbeddings} s ON s.id = c.id
       WHERE c.id = ?`,
    )
    const vectorOf = db.prepare(`SELECT data FROM ${tables.vectors} WHERE id = ?`)
    const copied = rebuilt.flatMap(({ id, ...terms }) => {
      const row = find.get(id) as
        | (Omit<PackedChunk, 'headingPath' | 'vector' | 'tokenStates'> & { readonly tokenStates: Uint8Array | null } & Record<
              'headingPath' | 'documentId' | 'generation' | 'attributes',
              string
            >)
        | undefined
      const stored = vectorOf.get(id) as { readonly data: Uint8Array } | undefined
      // The chunk was deleted meanwhile, or written since the draft was started. A chunk without a vector is useless;
      // `kis verify` reports it as missing.
      if (!row || !stored || isThere.get(row.chunkId)) return []
      const vector = Float32Array.from(new Int8Array(stored.data))
      const tokenStates = row.tokenStates && new Int8Array(row.tokenStates)
      return [{ ...row, ...terms, vector, tokenStates, headingPath: JSON.parse(row.headingPath) as string[] }]
    })
    for (const chunks of Map.groupBy(copied, ({ documentId, generation }) => `${documentId} ${generation}`).values()) {
      const { documentId, generation, attributes } = chunks[0]!
      putInto(draft, { documentId, generation, attributes: JSON.parse(attributes) as IndexedDocument['attributes'] }, chunks)
    }
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

  /** Counts each chunk's terms. Returns the terms' IDs. */
  function addTerms(tables: Tables, ofChunks: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
    const add = db.prepare(
      `INSERT INTO ${tables.terms} (term, chunks) VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET chunks = chunks + excluded.chunks RETURNING id`,
    )
    const chunks = countTerms(ofChunks.flatMap((counts) => [...counts.keys()]))
    return new Map([...chunks].map(([term, count]) => [term, (add.get(term, count) as { id: number }).id]))
  }

  /** Removes chunks from all tables and totals. */
  function removeChunks(tables: Tables, key: CollectionRow['key'], ids: readonly number[]): void {
    if (ids.length === 0) return
    const read = db.prepare(`SELECT words, grams, counts FROM ${tables.chunks} WHERE id = ?`)
    const chunks = ids.map((id) => ({ id, ...(read.get(id) as { words: number; grams: number; counts: Uint8Array }) }))
    const chunksOfTerm = new Map<number, number>()
    for (const { counts } of chunks) readCounts(counts, (term) => chunksOfTerm.set(term, (chunksOfTerm.get(term) ?? 0) + 1))
    const subtract = db.prepare(`UPDATE ${tables.terms} SET chunks = chunks - ? WHERE id = ? RETURNING chunks, term`)
    const removeTerm = db.prepare(`DELETE FROM ${tables.terms} WHERE id = ?`)
    const words = new Set<number>()
    for (const [id, count] of chunksOfTerm) {
      const left = subtract.get(count, id) as { chunks: number; term: string }
      if (isWord(left.term)) words.add(id)
      if (left.chunks === 0) removeTerm.run(id)
    }
    const removeRows = [tables.vectors, tables.tokenEmbeddings, tables.chunks].map((table) =>
      db.prepare(`DELETE FROM ${table} WHERE id = ?`),
    )
    for (const { id } of chunks) for (const remove of removeRows) remove.run(id)
    const { hasPostings } = addToTotals(
      key,
      -chunks.length,
      chunks.reduce((sum, { words }) => sum - words, 0),
      chunks.reduce((sum, { grams }) => sum - grams, 0),
    )
    if (hasPostings) removePostings(db, tables, chunks, words)
    db.prepare('UPDATE collections SET removals = removals + 1 WHERE key = ?').run(key)
    eraser.deleted()
  }

  function addToTotals(
    key: CollectionRow['key'],
    chunks: number,
    words: number,
    grams: number,
  ): Pick<CollectionRow, 'chunks' | 'hasPostings'> {
    const row = db
      .prepare(
        `UPDATE collections SET chunks = chunks + ?, words = words + ?, grams = grams + ? WHERE key = ?
         RETURNING chunks, has_postings AS hasPostings`,
      )
      .get(chunks, words, grams, key)
    return row as unknown as Pick<CollectionRow, 'chunks' | 'hasPostings'>
  }

  return {
    handlers: {
      createCollection: undoable(createCollection),
      dropCollection: undoable(dropCollection),
      put: undoable(put),
      setAttributes: undoable(setAttributes),
      deleteDocument: undoable(deleteDocument),
      deleteGeneration: undoable(deleteGeneration),
      beginDraft: undoable(startDraft),
      continueDraft: undoable(continueDraft),
      rebuildEarlier: undoable((stepMs: number) => rebuildEarlier(db, stepMs)),
      organizations: undoable(organizations),
      listCollections: undoable(listCollections),
      /**
       * Responds once the tables exist. It rewrites an existing value, because only a write shows that the disk is
       * full.
       */
      ping: () => orFailure(() => db.exec(`PRAGMA user_version=${INDEX_VERSION}`)),
      corruptionSeenAtStart: () => orFailure(() => findCorruptionAtStart(db, file)),
    },
    batch: {
      maxCalls: MAX_CALLS,
      around: (run) =>
        orFailure(() => {
          db.exec('BEGIN IMMEDIATE')
          try {
            run()
            db.exec('COMMIT')
          } catch (error) {
            if (db.isTransaction) db.exec('ROLLBACK')
            throw error
          }
        }),
    },
    close() {
      eraser[Symbol.dispose]()
      db.close()
    },
  }
})

function checkVector({ vector, chunkId }: PackedChunk, dimensions: number): void {
  if (vector.length !== dimensions) {
    refuse('invalid_request', `The vector of chunk ${chunkId} has ${vector.length} components; the collection's have ${dimensions}.`)
  }
  if (!vector.every(Number.isFinite))
    refuse('invalid_request', `The vector of chunk ${chunkId} has a component that is not a finite number.`)
  if (vector.every((x) => x === 0)) refuse('invalid_request', `The vector of chunk ${chunkId} is zero, so it has no direction.`)
}

function checkTokenEmbeddings({ tokenStates, chunkId }: PackedChunk): void {
  if (tokenStates && tokenStates.length > MAX_TOKEN_EMBEDDINGS_BYTES)
    refuse(
      'invalid_request',
      `The token embeddings of chunk ${chunkId} have ${tokenStates.length} bytes; at most ${MAX_TOKEN_EMBEDDINGS_BYTES} are stored.`,
    )
}

function isWord(term: string): boolean {
  return term.startsWith('w')
}

function countTerms(terms: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return counts
}
