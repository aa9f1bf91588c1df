import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MAX_TOKEN_EMBEDDINGS_BYTES } from '../../subgraphs/knowledge/domain/search/max-sim.ts'
import type { SearchFilter } from '../../subgraphs/knowledge/domain/search/search-filter.ts'
import { grams, queryTerms, words } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex, ChunkQuery, ToTerms } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import {
  ATTRIBUTES,
  COLLECTION,
  chunkId,
  coverage,
  createChunk,
  createDocument,
  DIMENSIONS,
  dot,
  listIds,
  type OpenedCollection,
  OTHER,
  openCollection,
  sorted,
  TEXTS,
  unitVector,
  withWords,
} from '../support/data/chunks.ts'
import { rebuildContract } from './chunk-index-rebuild.ts'

/** An int8 component is off by at most 1/254 of the largest, so a cosine of 24 components is right to two places. */
const COSINE_TOLERANCE = 0.02
/** Lucene keeps the length of a passage in one byte, which is exact for short ones only. */
const COVERAGE_TOLERANCE = 0.01
const retermed: ToTerms = async (chunks) => chunks.map(({ text }) => ({ words: words(text), grams: grams(text) }))

/**
 * What every chunk index must do. `open` gives an empty one; `atomicWrites` says whether a call is seen whole or not at
 * all.
 */
export function chunkIndexContract(
  name: string,
  open: () => Promise<ChunkIndex>,
  { atomicWrites }: { readonly atomicWrites: boolean },
): void {
  describe.concurrent(`${name} as a chunk index`, () => {
    const signal = new AbortController().signal
    /** Each has an index of its own. */
    const test = (title: string, body: (collection: OpenedCollection) => Promise<void>) =>
      it(title, async () => {
        await using collection = await openCollection(open, 100)
        await body(collection)
      })

    test('returns the cosine and both coverages of every candidate as the formulas say', async ({ index, searchText }) => {
      const chunks = TEXTS.map((text, i) => createChunk(text, i))
      await index.put(createDocument('doc_1'), chunks)
      for (const [seed, text] of [
        'letters of the sultan',
        'ميناء السفينة',
        'harbour 1453',
        'المكتبه القديمه',
        'nothing alike ξ',
      ].entries()) {
        const vector = unitVector(1000 + seed)
        const found = await searchText(text, { vector })
        expect(listIds(found)).toEqual(chunks.map(({ chunkId }) => chunkId).sort())
        for (const candidate of found) {
          const at = chunks.findIndex(({ chunkId }) => chunkId === candidate.chunkId)
          expect(Math.abs(candidate.cosine! - dot(vector, chunks[at]!.vector))).toBeLessThan(COSINE_TOLERANCE)
          expect(Math.abs(candidate.wordCoverage - coverage(TEXTS, text, words)[at]!)).toBeLessThan(COVERAGE_TOLERANCE)
          expect(Math.abs(candidate.gramCoverage - coverage(TEXTS, text, grams)[at]!)).toBeLessThan(COVERAGE_TOLERANCE)
        }
      }
    })

    test('counts repeated terms, and the length of a chunk, like BM25', async ({ index, searchText }) => {
      const texts = ['cedar', 'cedar cedar cedar', `cedar ${'harbour '.repeat(40)}`, 'silk']
      await index.put(
        createDocument('doc_1'),
        texts.map((text, i) => createChunk(text, i)),
      )
      const found = await searchText('cedar silk silk')
      const expected = coverage(texts, 'cedar silk', words)
      for (const { chunkId, wordCoverage } of found) {
        expect(Math.abs(wordCoverage - expected[Number(chunkId.at(-1))]!)).toBeLessThan(COVERAGE_TOLERANCE)
      }
      expect(found).toHaveLength(4)
    })

    test('finds Arabic, digits and one-letter words by their terms alone', async ({ index, search, searchText }) => {
      await index.put(
        createDocument('doc_1'),
        TEXTS.map((text, i) => createChunk(text, i)),
      )
      const best = async (text: string) =>
        (await searchText(text)).toSorted((a, b) => b.wordCoverage + b.gramCoverage - a.wordCoverage - a.gramCoverage)[0]
      expect((await best('المكتبةُ القديمـــة'))?.chunkId).toBe(chunkId('doc_1', 'g1', 2))
      expect((await best('300'))?.chunkId).toBe(chunkId('doc_1', 'g1', 5))
      expect(await search({ words: ['^', '$', '"', 'OR', '*'], grams: ['" O', 'NEA'] })).toEqual([])
    })

    test('returns no cosine without a vector and no coverage without terms', async ({ index, search, searchText }) => {
      await index.put(createDocument('doc_1'), [createChunk(TEXTS[0], 0)])
      const [lexical] = await searchText('sultan')
      expect(lexical).toMatchObject({ cosine: null, language: 'en', documentId: 'doc_1', generation: 'g1' })
      const [vector] = await search({ vector: unitVector(0) })
      expect(vector).toMatchObject({ wordCoverage: 0, gramCoverage: 0 })
      expect(vector!.cosine).toBeGreaterThan(0.98)
      expect(await search({})).toEqual([])
    })

    test('compares every candidate with the anchor, which retrieves none itself', async ({ index, search, searchText }) => {
      const chunks = TEXTS.map((text, i) => createChunk(text, i))
      await index.put(createDocument('doc_1'), chunks)
      const anchor = unitVector(2000)
      const found = await searchText('letters of the sultan', { vector: unitVector(1000), anchor })
      for (const { chunkId, anchorCosine } of found) {
        const { vector } = chunks.find((chunk) => chunk.chunkId === chunkId)!
        expect(Math.abs(anchorCosine! - dot(anchor, vector))).toBeLessThan(COSINE_TOLERANCE)
      }
      expect(found.length).toBeGreaterThan(0)
      expect((await searchText('sultan')).map(({ anchorCosine }) => anchorCosine)).toEqual([null])
      expect(await search({ anchor })).toEqual([])
      await expect(search({ anchor: unitVector(0, DIMENSIONS + 8) })).rejects.toMatchObject({ code: 'invalid_request' })
    })

    test('returns at most the requested candidates of each retriever, the best ones', async ({ index, search, searchText }) => {
      const chunks = Array.from({ length: 60 }, (_, i) => createChunk(i === 17 ? 'sultan' : `harbour ${i}`, i))
      await index.put(createDocument('doc_1'), chunks)
      const vector = chunks[41]!.vector
      const found = await searchText('sultan', { vector, candidates: 1 })
      expect(listIds(found)).toEqual([chunkId('doc_1', 'g1', 17), chunkId('doc_1', 'g1', 41)])
      const nearest = await search({ vector, candidates: 5 })
      const expected = chunks.toSorted((a, b) => dot(vector, b.vector) - dot(vector, a.vector)).slice(0, 5)
      expect(listIds(nearest)).toEqual(listIds(expected))
    })

    test('finds nothing in a collection that is empty or missing', async ({ index, searchText }) => {
      expect(await searchText('sultan', { vector: unitVector(1) })).toEqual([])
      expect(await searchText('sultan', { collectionId: OTHER })).toEqual([])
      expect(await index.get(OTHER, ['x'])).toEqual([])
      expect(await index.ordinals(OTHER, 'doc_1', 'g1')).toEqual([])
      await index.deleteDocument(OTHER, 'doc_1')
      await index.dropCollection(OTHER)
    })

    test('replaces a chunk with the same ID and its former content', async ({ index, searchText }) => {
      await index.put(createDocument('doc_1'), [createChunk('sultan of the cedar', 0), createChunk('harbour', 1)])
      await index.put(createDocument('doc_1'), [{ ...createChunk('silk and spices', 0), vector: unitVector(77) }])
      expect(listIds(withWords(await searchText('sultan cedar')))).toEqual([])
      const found = await searchText('silk', { vector: unitVector(77) })
      const silk = found.find((c) => c.chunkId === chunkId('doc_1', 'g1', 0))!
      expect(silk.cosine).toBeGreaterThan(0.98)
      expect(Math.abs(silk.wordCoverage - coverage(['silk and spices', 'harbour'], 'silk', words)[0]!)).toBeLessThan(COVERAGE_TOLERANCE)
      expect((await index.get(COLLECTION, [chunkId('doc_1', 'g1', 0)]))[0]?.text).toBe('silk and spices')
    })

    test('is idempotent for repeated writes, even when one call repeats an ID', async ({ index, searchText }) => {
      const chunks = TEXTS.map((text, i) => createChunk(text, i))
      await index.put(createDocument('doc_1'), chunks)
      const before = await searchText('letters of the sultan', { vector: unitVector(5) })
      await index.put(createDocument('doc_1'), [...chunks, chunks[0]!])
      await index.put(createDocument('doc_1'), chunks.slice(2))
      const after = await searchText('letters of the sultan', { vector: unitVector(5) })
      expect(sorted(after)).toEqual(sorted(before))
      expect(await index.ordinals(COLLECTION, 'doc_1', 'g1')).toEqual([0, 1, 2, 3, 4, 5])
    })

    test('lists the ordinals of one generation, ascending', async ({ index }) => {
      await index.put(createDocument('doc_1'), [createChunk('b', 7), createChunk('a', 2)])
      await index.put(createDocument('doc_1'), [createChunk('c', 11)])
      await index.put(createDocument('doc_1', 'g2'), [createChunk('c', 3, 'doc_1', 'g2')])
      expect(await index.ordinals(COLLECTION, 'doc_1', 'g1')).toEqual([2, 7, 11])
      expect(await index.ordinals(COLLECTION, 'doc_1', 'g3')).toEqual([])
    })

    test('stores generations side by side and deletes all but the named one', async ({ index, searchText }) => {
      await index.put(createDocument('doc_1'), [createChunk('sultan', 0), createChunk('cedar', 1)])
      await index.put(createDocument('doc_1', 'g2'), [createChunk('sultan', 0, 'doc_1', 'g2')])
      await index.put(createDocument('doc_2'), [createChunk('sultan', 0, 'doc_2')])
      expect((await searchText('sultan')).map((c) => `${c.documentId} ${c.generation}`).sort()).toEqual([
        'doc_1 g1',
        'doc_1 g2',
        'doc_2 g1',
      ])
      await index.deleteDocument(COLLECTION, 'doc_1', 'g2')
      await index.deleteDocument(COLLECTION, 'doc_1', 'g2')
      const all = await searchText('sultan cedar', { vector: unitVector(0) })
      expect(listIds(all)).toEqual([chunkId('doc_1', 'g2', 0), chunkId('doc_2', 'g1', 0)].sort())
      expect(await index.ordinals(COLLECTION, 'doc_1', 'g1')).toEqual([])
    })

    test('finds nothing of a deleted document, and scores the rest as if it had never existed', async ({ index, searchText }) => {
      await index.put(
        createDocument('doc_2'),
        TEXTS.map((text, i) => createChunk(text, i, 'doc_2')),
      )
      const alone = await searchText('letters harbour', { vector: unitVector(3) })
      await index.put(
        createDocument('doc_1'),
        Array.from({ length: 200 }, (_, i) => createChunk(`letters harbour ${i}`, i)),
      )
      await index.deleteDocument(COLLECTION, 'doc_1')
      expect(sorted(await searchText('letters harbour', { vector: unitVector(3) }))).toEqual(sorted(alone))
      expect(await index.get(COLLECTION, [chunkId('doc_1', 'g1', 0)])).toEqual([])
    })

    test('separates collections in hits, scores and deletes', async ({ index, searchText }) => {
      await index.createCollection({ organizationId: 'org_b', collectionId: OTHER, dimensions: DIMENSIONS })
      await index.put(createDocument('doc_1'), [createChunk('sultan', 0), createChunk('cedar', 1)])
      const alone = await searchText('sultan', { vector: unitVector(0) })
      const theirs = { ...createDocument('doc_1'), organizationId: 'org_b', collectionId: OTHER }
      await index.put(
        theirs,
        Array.from({ length: 50 }, (_, i) => createChunk('sultan', i)),
      )
      expect(sorted(await searchText('sultan', { vector: unitVector(0) }))).toEqual(sorted(alone))
      expect(await searchText('sultan', { collectionId: OTHER })).toHaveLength(50)
      await index.dropCollection(OTHER)
      await index.dropCollection(OTHER)
      expect(await searchText('sultan', { collectionId: OTHER, vector: unitVector(0) })).toEqual([])
      expect(sorted(await searchText('sultan', { vector: unitVector(0) }))).toEqual(sorted(alone))
    })

    test('returns a dropped collection empty when it is created again', async ({ index, searchText }) => {
      await index.put(createDocument('doc_1'), [createChunk('sultan', 0)])
      await index.dropCollection(COLLECTION)
      await index.createCollection({ organizationId: 'org_a', collectionId: COLLECTION, dimensions: DIMENSIONS + 8 })
      await index.createCollection({ organizationId: 'org_a', collectionId: COLLECTION, dimensions: DIMENSIONS + 8 })
      expect(await searchText('sultan', { vector: unitVector(0, DIMENSIONS + 8) })).toEqual([])
    })

    test('deletes one generation and no others', async ({ index, searchText }) => {
      for (const generation of ['g1', 'g2', 'g3']) {
        await index.put(createDocument('doc_1', generation), [createChunk('sultan', 0, 'doc_1', generation)])
      }
      await index.put(createDocument('doc_2', 'g2'), [createChunk('sultan', 0, 'doc_2', 'g2')])
      await index.deleteGeneration(COLLECTION, 'doc_1', 'g2')
      await index.deleteGeneration(COLLECTION, 'doc_1', 'g2')
      await index.deleteGeneration(OTHER, 'doc_1', 'g1')
      const left = [chunkId('doc_1', 'g1', 0), chunkId('doc_1', 'g3', 0), chunkId('doc_2', 'g2', 0)]
      expect(listIds(await searchText('sultan'))).toEqual(left)
    })

    test('lists its collections and generations with their chunks, page by page', async ({ index }) => {
      expect(await index.listCollections('', 10)).toEqual([])
      expect(await index.listGenerations(COLLECTION, '', 10)).toEqual([])
      await index.createCollection({ organizationId: 'org_b', collectionId: OTHER, dimensions: DIMENSIONS + 8 })
      expect([await index.hasCollection(OTHER), await index.hasCollection('col_none')]).toEqual([true, false])
      await index.put(
        createDocument('doc_1'),
        TEXTS.map((text, i) => createChunk(text, i)),
      )
      await index.put(createDocument('doc_1', 'g2'), [createChunk('sultan', 0, 'doc_1', 'g2'), createChunk('cedar', 2, 'doc_1', 'g2')])
      await index.put(createDocument('doc_2'), [createChunk('sultan', 0, 'doc_2')])
      const theirs = { ...createDocument('doc_1'), organizationId: 'org_b', collectionId: OTHER }
      await index.put(theirs, [{ ...createChunk('sultan', 0), vector: unitVector(0, DIMENSIONS + 8) }])

      const collections = [
        { collectionId: COLLECTION, chunks: 9 },
        { collectionId: OTHER, chunks: 1 },
      ]
      expect(await index.listCollections('', 10)).toEqual(collections)
      expect(await index.listCollections('', 1)).toEqual(collections.slice(0, 1))
      expect(await index.listCollections(COLLECTION, 10)).toEqual(collections.slice(1))
      const generations = [
        { documentId: 'doc_1', generation: 'g1', chunks: 6, lastOrdinal: 5 },
        { documentId: 'doc_1', generation: 'g2', chunks: 2, lastOrdinal: 2 },
        { documentId: 'doc_2', generation: 'g1', chunks: 1, lastOrdinal: 0 },
      ]
      expect(await index.listGenerations(COLLECTION, '', 10)).toEqual(generations)
      expect(await index.listGenerations(COLLECTION, '', 2)).toEqual(generations.slice(0, 2))
      expect(await index.listGenerations(COLLECTION, 'doc_1', 10)).toEqual(generations.slice(2))
      await index.deleteDocument(COLLECTION, 'doc_1')
      expect(await index.listGenerations(COLLECTION, '', 10)).toEqual(generations.slice(2))
      await index.dropCollection(OTHER)
      expect(await index.listCollections('', 10)).toEqual([{ collectionId: COLLECTION, chunks: 1 }])
      expect(await index.hasCollection(OTHER)).toBe(false)
    })

    test('refuses vectors of other dimensions or with a component that is not a number, and writes nothing of that call', async ({
      index,
      search,
    }) => {
      const good = createChunk('sultan', 0)
      for (const vector of [
        unitVector(0, DIMENSIONS + 1),
        unitVector(0).fill(Number.NaN, 3, 4),
        unitVector(0).fill(Number.POSITIVE_INFINITY, 0, 1),
      ]) {
        const refused = index.put(createDocument('doc_1'), [good, { ...createChunk('cedar', 1), vector }])
        await expect(refused).rejects.toMatchObject({ name: 'KisError', code: 'invalid_request' })
      }
      expect(await index.ordinals(COLLECTION, 'doc_1', 'g1')).toEqual([])
      await index.put(createDocument('doc_1'), [good])
      await expect(search({ vector: unitVector(0, 8) })).rejects.toMatchObject({ code: 'invalid_request' })
    })

    test('returns whole chunks, in the order of the IDs, without missing ones', async ({ index }) => {
      const chunks = TEXTS.map((text, i) => ({ ...createChunk(text, i), headingPath: ['كتاب', `Part ${i}`], pageStart: i, pageEnd: i + 1 }))
      await index.put(createDocument('doc_1'), chunks)
      const ids = [3, 0, 5].map((i) => chunks[i]!.chunkId)
      const found = await index.get(COLLECTION, [ids[0]!, 'chunk_unknown', ids[1]!, ids[2]!])
      expect(found).toEqual(
        [3, 0, 5].map((i) => {
          const { vector: _vector, tokenStates: _tokenStates, context: _context, words: _words, grams: _grams, ...stored } = chunks[i]!
          return { ...stored, organizationId: 'org_a', collectionId: COLLECTION, documentId: 'doc_1', generation: 'g1' }
        }),
      )
    })

    test('returns token embeddings as written, and omits chunks without them', async ({ index }) => {
      const chunks = TEXTS.map((text, i) => createChunk(text, i))
      const ids = chunks.map(({ chunkId }) => chunkId)
      const written = new Map(chunks.flatMap(({ chunkId, tokenStates }) => (tokenStates ? [[chunkId, tokenStates] as const] : [])))
      await index.put(createDocument('doc_1'), chunks)
      expect(await index.tokenEmbeddings(COLLECTION, [...ids, 'none'])).toEqual(written)
      expect(written.size).toBe(4)
      expect(await index.tokenEmbeddings(COLLECTION, [])).toEqual(new Map())
      expect(await index.tokenEmbeddings(OTHER, ids)).toEqual(new Map())
      await expect(index.tokenEmbeddings(COLLECTION, new Array(101).fill('x'))).rejects.toMatchObject({ code: 'array_above_max_length' })

      await index.setAttributes({ ...createDocument('doc_1'), attributes: ATTRIBUTES.doc_1 }, retermed)
      expect(await index.tokenEmbeddings(COLLECTION, ids)).toEqual(written)

      const most = new Int8Array(MAX_TOKEN_EMBEDDINGS_BYTES).fill(-128)
      await index.put(createDocument('doc_1'), [
        { ...chunks[0]!, tokenStates: most },
        { ...chunks[1]!, tokenStates: null },
      ])
      expect(await index.tokenEmbeddings(COLLECTION, ids.slice(0, 2))).toEqual(new Map([[ids[0], most]]))
      const tooMany = { ...chunks[0]!, tokenStates: new Int8Array(MAX_TOKEN_EMBEDDINGS_BYTES + 1) }
      await expect(index.put(createDocument('doc_1'), [tooMany])).rejects.toMatchObject({ code: 'invalid_request' })
    })

    test('has no token embeddings of deleted chunks', async ({ index }) => {
      await index.put(createDocument('doc_1'), [createChunk(TEXTS[0], 0)])
      await index.put(createDocument('doc_1', 'g2'), [createChunk(TEXTS[0], 0, 'doc_1', 'g2')])
      await index.deleteGeneration(COLLECTION, 'doc_1', 'g1')
      const ids = [chunkId('doc_1', 'g1', 0), chunkId('doc_1', 'g2', 0)]
      expect([...(await index.tokenEmbeddings(COLLECTION, ids)).keys()]).toEqual([ids[1]])
      await index.deleteDocument(COLLECTION, 'doc_1')
      expect((await index.tokenEmbeddings(COLLECTION, ids)).size).toBe(0)
      // The place of a deleted chunk may be taken by one without token states.
      await index.put(createDocument('doc_1'), [createChunk(TEXTS[2], 2)])
      expect((await index.tokenEmbeddings(COLLECTION, [chunkId('doc_1', 'g1', 2)])).size).toBe(0)
    })

    test('serves searches during writes, and loses no write', async ({ index, searchText }) => {
      const put = (d: number) =>
        index.put(
          createDocument(`doc_${d}`),
          Array.from({ length: 40 }, (_, i) => createChunk(`sultan ${d}`, i, `doc_${d}`)),
        )
      const query = { vector: unitVector(1), candidates: 1000 }
      await Promise.all(Array.from({ length: 8 }, (_, d) => Promise.all([put(d), searchText('sultan', query), put(d)])))
      expect(await searchText('sultan', query)).toHaveLength(320)
    })

    if (atomicWrites)
      test('never shows a partial write', async ({ index, searchText }) => {
        const writes = Array.from({ length: 8 }, (_, d) =>
          index.put(
            createDocument(`doc_${d}`),
            Array.from({ length: 40 }, (_, i) => createChunk(`sultan ${d}`, i, `doc_${d}`)),
          ),
        )
        let going = true
        const done = Promise.all(writes).finally(() => {
          going = false
        })
        const seen = new Set<number>()
        while (going) {
          const found = await searchText('sultan', { candidates: 1000 })
          const ofDocument = Map.groupBy(found, (c) => c.documentId)
          for (const chunks of ofDocument.values()) seen.add(chunks.length)
        }
        await done
        expect([...seen].filter((count) => count !== 40)).toEqual([])
      })

    test('rejects a search whose signal is aborted, and serves the next', async ({ index }) => {
      await index.put(createDocument('doc_1'), [createChunk('sultan', 0)])
      const query: ChunkQuery = { collectionId: COLLECTION, vector: null, ...queryTerms('sultan'), candidates: 10, filter: null }
      await expect(index.search(query, AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' })
      const controller = new AbortController()
      const searches = Array.from({ length: 20 }, () => index.search(query, controller.signal))
      controller.abort()
      for (const outcome of await Promise.allSettled(searches))
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } })
      expect(await index.search(query, signal)).toHaveLength(1)
      await index.ping(signal)
    })
  })

  describe.concurrent(`${name} as a chunk index, with a filter`, () => {
    const opened = async () => {
      const collection = await openCollection(open, 100)
      await collection.index.put({ ...createDocument('doc_1'), attributes: ATTRIBUTES.doc_1 }, [
        { ...createChunk('sultan', 0), pageStart: 1, pageEnd: 3 },
        { ...createChunk('sultan', 1), pageStart: 4, pageEnd: 4 },
      ])
      await collection.index.put({ ...createDocument('doc_2'), attributes: ATTRIBUTES.doc_2 }, [createChunk('sultan', 0, 'doc_2')])
      return collection
    }

    describe('over unchanged documents', () => {
      let collection: OpenedCollection
      beforeAll(async () => {
        collection = await opened()
      })
      afterAll(() => collection?.[Symbol.asyncDispose]())

      for (const [title, filter, expected] of FILTERS) {
        it(`finds ${expected.join(', ') || 'nothing'} for ${title}`, async () => {
          const wanted = expected.map((short) => chunkId(`doc_${short[0]}`, 'g1', Number(short[2]))).sort()
          expect(listIds(await collection.searchText('sultan', { filter }))).toEqual(wanted)
          expect(listIds(await collection.search({ vector: unitVector(9), filter }))).toEqual(wanted)
        })
      }
    })

    it('finds the requested number, however rare matching chunks are', async () => {
      await using collection = await opened()
      const many = Array.from({ length: 250 }, (_, i) => createChunk('sultan harbour', i, 'doc_3'))
      await collection.index.put(createDocument('doc_3'), many)
      const filter: SearchFilter = { op: 'eq', field: 'file_name', value: 'a b.pdf' }
      const found = await collection.searchText('sultan', { vector: many[0]!.vector, candidates: 2, filter })
      expect(listIds(found)).toEqual([chunkId('doc_1', 'g1', 0), chunkId('doc_1', 'g1', 1)])
    })

    it('updates the attributes of one ingestion, and nothing else of it or of others', async () => {
      await using collection = await opened()
      const { index, searchText } = collection
      await index.put({ ...createDocument('doc_2'), generation: 'g2' }, [createChunk('sultan', 0, 'doc_2', 'g2')])
      const before = await searchText('letters of the sultan', { vector: unitVector(5) })
      await index.setAttributes({ ...createDocument('doc_1'), attributes: { file_name: 'renamed.txt', 'metadata.year': 2031 } }, retermed)
      await index.setAttributes({ ...createDocument('doc_2'), attributes: { file_name: 'renamed.txt' } }, retermed)
      expect(sorted(await searchText('letters of the sultan', { vector: unitVector(5) }))).toEqual(sorted(before))
      const findBy = async (field: string, value: string | number) =>
        listIds(await searchText('letters of the sultan', { vector: unitVector(5), filter: { op: 'eq', field, value } }))
      expect(await findBy('file_name', 'renamed.txt')).toEqual([
        chunkId('doc_1', 'g1', 0),
        chunkId('doc_1', 'g1', 1),
        chunkId('doc_2', 'g1', 0),
      ])
      expect(await findBy('metadata.year', 2031)).toEqual([chunkId('doc_1', 'g1', 0), chunkId('doc_1', 'g1', 1)])
      expect(await findBy('file_name', 'a b.pdf')).toEqual([])
      // Nothing of that ingestion is there.
      await index.setAttributes({ ...createDocument('doc_9'), attributes: {} }, retermed)
      expect(await index.ordinals(COLLECTION, 'doc_9', 'g1')).toEqual([])
    })

    it('uses the attributes of the last write of a document', async () => {
      await using collection = await opened()
      await collection.index.put({ ...createDocument('doc_2'), attributes: { file_name: 'renamed.txt' } }, [
        createChunk('sultan', 0, 'doc_2'),
      ])
      const filter: SearchFilter = { op: 'eq', field: 'file_name', value: 'renamed.txt' }
      expect(listIds(await collection.searchText('sultan', { filter }))).toEqual([chunkId('doc_2', 'g1', 0)])
    })
  })

  rebuildContract(name, open)
}

/** Chunks as `<document>.<ordinal>`. Chunk 1.0 has pages 1 to 3, 1.1 has page 4, and document 2 has no pages. */
const FILTERS: readonly (readonly [string, SearchFilter, readonly string[]])[] = [
  ['a file name', { op: 'eq', field: 'file_name', value: 'كتاب.txt' }, ['2.0']],
  ['another file name', { op: 'ne', field: 'file_name', value: 'كتاب.txt' }, ['1.0', '1.1']],
  ['a language that one document lacks', { op: 'eq', field: 'language', value: 'en' }, ['1.0', '1.1']],
  ['not that language, by ne', { op: 'ne', field: 'language', value: 'en' }, ['2.0']],
  ['not that language, by not', { op: 'not', filter: { op: 'eq', field: 'language', value: 'en' } }, ['2.0']],
  ['a document', { op: 'eq', field: 'document_id', value: 'doc_2' }, ['2.0']],
  ['one of two documents', { op: 'in', field: 'document_id', values: ['doc_2', 'doc_9'] }, ['2.0']],
  ['later than', { op: 'gt', field: 'created_at', value: 1_000 }, ['2.0']],
  ['not earlier than', { op: 'gte', field: 'created_at', value: 1_000 }, ['1.0', '1.1', '2.0']],
  ['earlier than', { op: 'lt', field: 'created_at', value: 2_000 }, ['1.0', '1.1']],
  ['not later than', { op: 'lte', field: 'created_at', value: 999 }, []],
  ['a number, not the text of it', { op: 'eq', field: 'metadata.year', value: 2020 }, ['1.0', '1.1']],
  ['a text, not the number in it', { op: 'eq', field: 'metadata.year', value: '2020' }, ['2.0']],
  ['a boolean', { op: 'eq', field: 'metadata.draft', value: true }, ['1.0', '1.1']],
  ['the other boolean', { op: 'eq', field: 'metadata.draft', value: false }, []],
  ['a number that is no boolean', { op: 'eq', field: 'metadata.draft', value: 1 }, []],
  ['a field that nothing has', { op: 'gte', field: 'metadata.none', value: 0 }, []],
  ['a part of a file name', { op: 'contains', field: 'file_name', value: 'تاب' }, ['2.0']],
  ['a part in the other case', { op: 'contains', field: 'file_name', value: 'A B.P' }, ['1.0', '1.1']],
  ['a part with the signs of patterns', { op: 'contains', field: 'file_name', value: 'a%.*?[' }, []],
  ['a part with an ordinary character in place of a pattern sign', { op: 'contains', field: 'file_name', value: 'a.b' }, []],
  ['a part of a text, not of a number', { op: 'contains', field: 'metadata.year', value: '02' }, ['2.0']],
  ['a part of a field whose name has another case', { op: 'contains', field: 'FILE_NAME', value: 'a' }, []],
  ['a page inside a range', { op: 'eq', field: 'page', value: 2 }, ['1.0']],
  ['another page, including chunks without pages', { op: 'ne', field: 'page', value: 2 }, ['1.1', '2.0']],
  ['pages after', { op: 'gt', field: 'page', value: 3 }, ['1.1']],
  ['pages from', { op: 'gte', field: 'page', value: 3 }, ['1.0', '1.1']],
  ['pages before', { op: 'lt', field: 'page', value: 4 }, ['1.0']],
  ['pages up to', { op: 'lte', field: 'page', value: 4 }, ['1.0', '1.1']],
  ['one of some pages', { op: 'in', field: 'page', values: [3, 4, 9] }, ['1.0', '1.1']],
  [
    'both of two conditions',
    {
      op: 'and',
      filters: [
        { op: 'eq', field: 'media_type', value: 'application/pdf' },
        { op: 'eq', field: 'page', value: 4 },
      ],
    },
    ['1.1'],
  ],
  [
    'one of two conditions',
    {
      op: 'or',
      filters: [
        { op: 'eq', field: 'media_type', value: 'text/plain' },
        { op: 'eq', field: 'page', value: 1 },
      ],
    },
    ['1.0', '2.0'],
  ],
  ['a value that looks like SQL', { op: 'eq', field: 'file_name', value: "' OR 1=1 --" }, []],
]
