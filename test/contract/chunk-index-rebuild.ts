import { describe, expect, it } from 'vitest'
import type { SearchFilter } from '../../subgraphs/knowledge/domain/search/search-filter.ts'
import { grams, words } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type {
  ChunkIndex,
  ChunkText,
  IndexedChunk,
  IndexedDocument,
  RebuildStep,
  ToTerms,
} from '../../subgraphs/knowledge/ports/chunk-index.ts'
import {
  ATTRIBUTES,
  COLLECTION,
  chunkId,
  createChunk,
  createDocument,
  DIMENSIONS,
  listIds,
  OTHER,
  openCollection,
  sorted,
  TEXTS,
  unitVector,
  withWords,
} from '../support/data/chunks.ts'

/**
 * What every chunk index must do when it is rebuilt. `open` gives an empty one. An index may wait before it retires the
 * old one, so the tests run at once.
 */
export function rebuildContract(name: string, open: () => Promise<ChunkIndex>): void {
  const signal = new AbortController().signal

  describe.concurrent(`${name} as a chunk index that is rebuilt`, () => {
    const texts = Array.from({ length: 600 }, (_, i) => `${TEXTS[i % TEXTS.length]} ${i}`)
    const question = 'letters of the sultan 77'
    const same: ToTerms = async (chunks) => chunks.map(({ text }) => ({ words: words(text), grams: grams(text) }))
    /** An index of the test's own, as the others rebuild theirs meanwhile. */
    const opened = async () => {
      const collection = await openCollection(open, 1000)
      const { index, searchText } = collection
      return {
        ...collection,
        async rebuilt(toTerms: ToTerms, between: (step: number) => unknown = () => undefined) {
          let chunks = 0
          let after: string | null = null
          for (let count = 0; ; count++) {
            await between(count)
            const step: RebuildStep = await index.rebuild(after, toTerms, signal)
            chunks += step.chunks
            if (step.next === null) return chunks
            after = step.next
          }
        },
        async putAll(document: IndexedDocument, chunks: readonly IndexedChunk[]) {
          for (let i = 0; i < chunks.length; i += 256) await index.put(document, chunks.slice(i, i + 256))
        },
        state: async () => ({
          collections: await index.listCollections('', 100),
          generations: await index.listGenerations(COLLECTION, '', 100),
          found: sorted(await searchText(question, { vector: unitVector(5) })),
          chunks: await index.get(
            COLLECTION,
            texts.map((_, i) => chunkId('doc_1', 'g1', i)),
          ),
          tokenStates: await index.tokenEmbeddings(
            COLLECTION,
            texts.slice(0, 100).map((_, i) => chunkId('doc_1', 'g1', i)),
          ),
        }),
      }
    }

    it('preserves its content at every step, even after interrupted rebuilds', async () => {
      await using its = await opened()
      const { index, searchText, rebuilt, putAll, state } = its
      const chunks = texts.map((text, i) => ({
        ...createChunk(text, i),
        headingPath: ['كتاب', 'II'],
        context: i % 2 ? '' : 'Context',
        pageStart: 1,
        pageEnd: 2,
      }))
      await putAll({ ...createDocument('doc_1'), attributes: ATTRIBUTES.doc_1 }, chunks)
      await index.put(createDocument('doc_2'), [createChunk('sultan', 0, 'doc_2')])
      await index.deleteDocument(COLLECTION, 'doc_2')
      await index.createCollection({ organizationId: 'org_b', collectionId: OTHER, dimensions: 8 })
      const theirs = { organizationId: 'org_b', collectionId: OTHER, documentId: 'doc_1', generation: 'g1', attributes: {} }
      await index.put(theirs, [{ ...createChunk('sultan', 0), vector: unitVector(0, 8) }])
      const before = await state()

      for (const steps of [1, 2, 5]) {
        let after: string | null = null
        for (let i = 0; i < steps; i++) after = (await index.rebuild(after, same, signal)).next
      }
      const seen: ChunkText[] = []
      const watched: ToTerms = (chunks) => {
        seen.push(...chunks.map(({ text, headingPath, context }) => ({ text, headingPath, context })))
        return same(chunks)
      }
      await rebuilt(watched, async () => expect((await state()).found).toEqual(before.found))
      expect(await state()).toEqual(before)
      const chunkTexts = [...chunks, { text: 'sultan', headingPath: [], context: '' }]
      const expected = chunkTexts.map(({ text, headingPath, context }) => ({ text, headingPath, context }))
      const inOrder = (found: readonly ChunkText[]) => found.toSorted((a, b) => (a.text < b.text ? -1 : 1))
      expect(inOrder(seen)).toEqual(inOrder(expected))
      const filter: SearchFilter = { op: 'eq', field: 'metadata.year', value: 2020 }
      expect(await searchText('sultan', { filter })).not.toHaveLength(0)
      expect(await searchText('sultan', { collectionId: OTHER, vector: unitVector(0, 8) })).toHaveLength(1)
    }, 120_000)

    it('preserves attributes that change meanwhile, and returns each chunk once by them', async () => {
      await using its = await opened()
      const { index, searchText, rebuilt, putAll } = its
      const documents = ['doc_1', 'doc_2', 'doc_3']
      for (const id of documents)
        await putAll(
          { ...createDocument(id), attributes: { file_name: 'old.txt' } },
          Array.from({ length: 130 }, (_, i) => createChunk(`sultan ${id} ${i}`, i, id)),
        )
      const changed: string[] = []
      const expectSeen = async () => {
        for (const name of ['new.txt', 'old.txt']) {
          const filter: SearchFilter = { op: 'eq', field: 'file_name', value: name }
          const found = listIds(await searchText('sultan', { filter, candidates: 1_000 }))
          expect(found).toHaveLength(new Set(found).size)
          expect(found).toHaveLength(130 * (name === 'new.txt' ? changed.length : documents.length - changed.length))
        }
      }
      await rebuilt(same, async () => {
        const next = documents[changed.length]
        if (next !== undefined) {
          await index.setAttributes({ ...createDocument(next), attributes: { file_name: 'new.txt' } }, same)
          changed.push(next)
        }
        await expectSeen()
      })
      expect(changed.length).toBeGreaterThanOrEqual(2)
      await expectSeen()
    }, 120_000)

    it('loses no write and restores no deletion of that time, and can be written to afterwards', async () => {
      await using its = await opened()
      const { index, searchText, rebuilt, putAll } = its
      const third = `col_${'c3'.repeat(16)}`
      const expected = new Map<string, number[]>()
      const put = async (documentId: string, count: number, generation = 'g1') => {
        const chunks = Array.from({ length: count }, (_, i) => createChunk(`sultan ${documentId} ${i}`, i, documentId, generation))
        await putAll(createDocument(documentId, generation), chunks)
        expected.set(`${documentId} ${generation}`, [...chunks.keys()])
      }
      for (const n of [1, 2, 3, 4, 5, 6, 7, 8]) await put(`doc_${n}`, 90)
      await put('doc_3', 5, 'g2')
      const remove = async (documentId: string) => {
        await index.deleteDocument(COLLECTION, documentId)
        for (const key of expected.keys()) if (key.startsWith(`${documentId} `)) expected.delete(key)
      }
      let steps = 0
      await rebuilt(same, async (step) => {
        steps = step
        await put(`doc_0${step}`, 3)
        await put(`doc_9${step}`, 3)
        if (step === 1) {
          await remove('doc_1')
          await index.createCollection({ organizationId: 'org_a', collectionId: third, dimensions: DIMENSIONS })
        }
        if (step === 2) {
          await remove('doc_2')
          await remove('doc_8')
          await put('doc_5', 95)
          await index.deleteGeneration(COLLECTION, 'doc_3', 'g1')
          expected.delete('doc_3 g1')
          await index.put({ ...createDocument('doc_1'), collectionId: third }, [createChunk('sultan', 0)])
        }
        // Adapters differ in how many steps they take.
        if (step === 4) await remove('doc_4')
        if (step === 5) await remove('doc_90')
        const found = await searchText('sultan')
        expect(found).toHaveLength([...expected.values()].flat().length)
      })
      expect(steps).toBeGreaterThanOrEqual(2)
      await put('doc_after', 2)
      for (const [key, ordinals] of expected) {
        const [documentId, generation] = key.split(' ') as [string, string]
        expect([key, await index.ordinals(COLLECTION, documentId, generation)]).toEqual([key, ordinals])
      }
      const listed = (await index.listGenerations(COLLECTION, '', 1000)).map(({ documentId, generation }) => `${documentId} ${generation}`)
      expect(listed).toEqual([...expected.keys()].sort())
      expect(await searchText('sultan', { collectionId: third, vector: unitVector(0) })).toHaveLength(1)
      await remove('doc_after')
      expect(listIds(await searchText('after'))).not.toContain(chunkId('doc_after', 'g1', 0))
    }, 120_000)

    it('restores nothing that is deleted or replaced during a step, nor after an interruption', async () => {
      await using its = await opened()
      const { index, searchText, rebuilt, putAll } = its
      await putAll(
        createDocument('doc_1'),
        texts.map((text, i) => createChunk(text, i)),
      )
      for (const n of [2, 3, 4]) await index.put(createDocument(`doc_${n}`), [createChunk(`cedar ${n}`, 0, `doc_${n}`)])
      const interrupted: string[] = []
      const onceAt = (text: string, change: () => Promise<void>, chunks: readonly ChunkText[]) => {
        if (interrupted.includes(text) || !chunks.some((chunk) => chunk.text === text)) return undefined
        interrupted.push(text)
        return change()
      }
      const replacing: ToTerms = async (chunks) => {
        await onceAt('cedar 2', () => index.deleteDocument(COLLECTION, 'doc_2'), chunks)
        await onceAt('cedar 3', () => index.put(createDocument('doc_3'), [createChunk('silk', 0, 'doc_3')]), chunks)
        return same(chunks)
      }
      let after: string | null = null
      for (let i = 0; i < 10 && interrupted.length < 2; i++) after = (await index.rebuild(after, replacing, signal)).next
      await rebuilt(async (chunks) => {
        await onceAt('cedar 4', () => index.deleteDocument(COLLECTION, 'doc_4'), chunks)
        return same(chunks)
      })
      expect(interrupted).toEqual(['cedar 2', 'cedar 3', 'cedar 4'])
      expect((await index.listGenerations(COLLECTION, '', 10)).map(({ documentId }) => documentId)).toEqual(['doc_1', 'doc_3'])
      expect((await index.get(COLLECTION, [chunkId('doc_3', 'g1', 0)]))[0]?.text).toBe('silk')
      expect(listIds(withWords(await searchText('silk spices')))).toContain(chunkId('doc_3', 'g1', 0))
    }, 120_000)

    it('uses the given terms, and is whole when two rebuild it concurrently', async () => {
      await using its = await opened()
      const { index, search, rebuilt, putAll } = its
      await putAll(
        createDocument('doc_1'),
        texts.map((text, i) => createChunk(text, i)),
      )
      const renamed: ToTerms = async (chunks) => chunks.map(() => ({ words: ['renamed'], grams: ['ren'] }))
      await Promise.all([rebuilt(renamed), rebuilt(renamed)])
      expect(await search({ words: ['renamed'] })).toHaveLength(600)
      expect(await search({ words: words('sultan'), grams: grams('sultan') })).toEqual([])
      expect(await index.listGenerations(COLLECTION, '', 10)).toEqual([
        { documentId: 'doc_1', generation: 'g1', chunks: 600, lastOrdinal: 599 },
      ])
      for (const after of ['', 'x', Buffer.from('{"at":"copy"}').toString('base64url')])
        await expect(index.rebuild(after, same, signal)).rejects.toMatchObject({ code: 'invalid_request' })
    }, 120_000)
  })
}
