import { expect, it } from 'vitest'
import { plainChunk } from '../../../../test/support/data/chunks.ts'
import { addReady, attach, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { createContext, createVector, depsOn, FakeInference, paragraphs, principal } from '../../../../test/support/knowledge.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { buildChunkId } from '../../domain/records.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import { searchCollection } from './search-collection.ts'

const index = await openTestIndex()

async function openCollection(through: ChunkIndex = index) {
  const inference = new FakeInference()
  const deps = depsOn(newWorld({ index: through, inference }))
  const collectionId = await newCollection(deps)
  const waiting = async (text: string, name: string) => (await attach(deps, collectionId, name, text)).id
  const ingested = (text: string, name = 'a.txt', metadata: Record<string, string> = {}) =>
    addReady(deps, collectionId, name, text, { metadata })
  const search = async (query: string, more: Partial<Parameters<typeof searchCollection>[2]> = {}, caller: Principal = principal) => {
    const input = { collectionId, query, limit: 10, mode: 'hybrid', filter: null, ...more } as const
    return (await searchCollection(deps, createContext(caller), input)).hits
  }
  return { deps, inference, collectionId, attach: waiting, ingested, search }
}

/** Writes chunks that only the index has. */
async function indexed(collectionId: string, documentId: string, generation: string, texts: readonly string[]): Promise<void> {
  const chunks = texts.map((text, ordinal) =>
    plainChunk(buildChunkId(documentId, generation, ordinal), ordinal, text, { vector: createVector(text) }),
  )
  await index.put({ organizationId: principal.organizationId, collectionId, documentId, generation, attributes: {} }, chunks)
}

const modes = ['hybrid', 'vector', 'lexical'] as const

it('returns no chunk of a document that is in process, hidden, of an earlier generation, or unknown', async () => {
  const { deps, collectionId, attach, ingested, search } = await openCollection()
  const ready = await ingested('The harbour of Sur was rebuilt.')
  const waiting = await attach('The harbour of Muscat.', 'b.txt')
  const hidden = await ingested('The harbour of Salalah.', 'c.txt')
  await deps.store.documents.findOneAndUpdate({ _id: hidden }, { $set: { listed: false } })
  await indexed(collectionId, waiting, 'g1', ['The harbour harbour harbour.'])
  await indexed(collectionId, ready, 'g0', ['The harbour as it was.'])
  await indexed(collectionId, `doc_${'0'.repeat(32)}`, 'g1', ['The harbour of nobody.'])
  for (const mode of modes) {
    const hits = await search('harbour', { mode })
    expect(hits.map(({ document }) => document._id)).toEqual([ready])
    expect(hits[0]!.chunk.text).toBe('The harbour of Sur was rebuilt.')
  }
})

it('returns no chunk of another organization, even if the index does', async () => {
  const other = await openCollection()
  await other.ingested('The harbour of others.')
  const leaks: Partial<ChunkIndex> = {
    search: (query, signal) => index.search({ ...query, collectionId: other.collectionId }, signal),
    get: (_own, ids) => index.get(other.collectionId, ids),
  }
  const leaking = new Proxy(index, {
    get: (target, key: keyof ChunkIndex) => leaks[key] ?? (target[key] as (...args: never) => unknown).bind(target),
  })
  const { search, deps } = await openCollection(leaking)
  // The other organization's document is in the same store.
  for (const document of await other.deps.store.documents.find({ collectionId: other.collectionId, listed: true }, { limit: 10 }))
    await deps.store.documents.insertOne({ ...document, organizationId: 'org_2' })
  for (const mode of modes) expect(await search('harbour', { mode })).toEqual([])
})

it('finds ready documents behind one in process that fills all results', async () => {
  const { collectionId, attach, ingested, search } = await openCollection()
  const ready = await ingested('The harbour of Sur was rebuilt after a storm in the year of the flood.')
  const waiting = await attach('Being read.', 'b.txt')
  await indexed(
    collectionId,
    waiting,
    'g1',
    Array.from({ length: 250 }, (_, i) => `harbour harbour ${i}`),
  )
  for (const mode of modes) expect((await search('harbour', { mode })).map(({ document }) => document._id)).toEqual([ready])
})

it('returns the best first, with the ranks of the retrievers of the mode', async () => {
  const { ingested, search, inference } = await openCollection()
  await ingested(`${paragraphs(3, 'kiln')}\n\n${'harbour kiln0x1 '.repeat(65)}`)
  const retrievers = { hybrid: [true, true], vector: [false, true], lexical: [true, false] } as const
  for (const mode of modes) {
    const hits = await search('harbour', { mode })
    const scores = hits.map(({ ranked }) => ranked.score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(hits[0]!.chunk.text).toContain('harbour')
    expect([hits[0]!.ranked.lexicalRank !== null, hits[0]!.ranked.vectorRank !== null]).toEqual(retrievers[mode])
  }
  expect(await search('harbour', { limit: 1 })).toHaveLength(1)
  inference.embedQuery = async () => {
    throw new Error('no query is embedded for a search by words')
  }
  expect(await search('harbour', { mode: 'lexical' })).not.toEqual([])
})

it('filters by file properties and by metadata', async () => {
  const { ingested, search } = await openCollection()
  const first = await ingested('The harbour of Sur.', 'first.txt', { year: '1931' })
  const second = await ingested('The harbour of Muscat.', 'second.txt')
  const found = async (filter: unknown) => (await search('harbour', { filter })).map(({ document }) => document._id)
  expect(await found({ file_name: 'second.txt' })).toEqual([second])
  expect(await found({ 'metadata.year': '1931' })).toEqual([first])
  expect(await found({ op: 'not', filter: { document_id: first } })).toEqual([second])
  expect(await found({ language: 'ar' })).toEqual([])
})

it('refuses a key that may not use the model, in every mode, and a collection of another organization', async () => {
  const { ingested, search } = await openCollection()
  await ingested('The harbour of Sur.')
  for (const mode of modes) {
    await expect(search('harbour', { mode }, { ...principal, modelAllowlist: ['other'] })).rejects.toMatchObject({
      code: 'model_not_found',
    })
    await expect(search('harbour', { mode }, { ...principal, organizationId: 'org_2' })).rejects.toMatchObject({ code: 'not_found' })
  }
})

it('refuses an empty query and a limit out of range', async () => {
  const { search } = await openCollection()
  for (const query of ['', '  ', 'ـــ'])
    await expect(search(query)).rejects.toMatchObject({ code: 'invalid_request', param: 'input.query' })
  await expect(search('x'.repeat(8_193))).rejects.toMatchObject({ code: 'string_above_max_length' })
  await expect(search('x', { limit: 0 })).rejects.toMatchObject({ code: 'integer_below_min_value' })
  await expect(search('x', { limit: 51 })).rejects.toMatchObject({ code: 'integer_above_max_value' })
})

it('searches an Arabizi query in Arabic letters, and the typed words in Arabizi chunks', async () => {
  const { ingested, search } = await openCollection()
  const arabic = await ingested('قنون العمل, in short')
  const typed = await ingested('keef el 3amal?')
  const hits = await search('qanoon al 3amal', { mode: 'lexical' })
  const marked = hits.map(({ document, chunk, highlights }) => [
    document._id,
    highlights.map(({ start, end }) => chunk.text.slice(start, end)),
  ])
  expect(Object.fromEntries(marked)).toEqual({ [arabic]: ['قنون', 'العمل'], [typed]: ['3amal'] })
})
