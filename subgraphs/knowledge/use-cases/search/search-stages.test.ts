import { describe, expect, it } from 'vitest'
import { addReady, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { createContext, createVector, depsOn, FakeInference, paragraphs, principal } from '../../../../test/support/knowledge.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { createCollection, updateCollection } from '../documents/collections.ts'
import { searchCollection } from './search-collection.ts'
import type { SearchInput } from './search-request.ts'

const index = await openTestIndex()

/** Two models whose vectors are not comparable. */
class TwoModels extends FakeInference {
  embeddings = 0
  override async embeddingModel(id: string, context: { readonly caller: Principal }) {
    if (id === 'embed-other') return { ...this.model, id }
    return super.embeddingModel(id, context)
  }
  override async embedQuery(_modelId: string, text: string) {
    this.embeddings += 1
    return { vector: createVector(text), cost: 3n }
  }
}

async function library() {
  const inference = new TwoModels()
  const deps = depsOn(newWorld({ index, inference }))
  const newCollection = async (code: string, embeddingModel = 'embed', rerankModel: string | null = null) => {
    const { _id } = await createCollection(deps, createContext(), { code, name: code, embeddingModel, rerankModel })
    return _id
  }
  const add = (collectionId: string, text: string, name: string, metadata: Record<string, string | number> = {}) =>
    addReady(deps, collectionId, name, text, { metadata })
  const search = (input: Omit<SearchInput, 'query'> & { readonly query?: string }) =>
    searchCollection(deps, createContext(principal), { query: 'harbour', ...input })
  const texts = async (input: Parameters<typeof search>[0]) => (await search(input)).hits.map(({ chunk }) => chunk.text)
  return { deps, inference, newCollection, add, search, texts }
}

describe('Search of several collections', () => {
  it('with one model ranks them together, for one embedding', async () => {
    const { inference, newCollection, add, search } = await library()
    const [a, b] = [await newCollection('a'), await newCollection('b')]
    await add(a, 'A harbour and much else of no interest here.', 'a.txt')
    await add(b, 'The harbour.', 'b.txt')
    const { hits, cost } = await search({ collectionIds: [a, b, a] })
    expect(hits.map(({ chunk }) => chunk.collectionId)).toEqual([b, a])
    const scores = hits.map(({ ranked }) => ranked.score)
    expect(scores).toEqual(scores.toSorted((x, y) => y - x))
    expect([inference.embeddings, cost]).toEqual([1, 3n])
  })

  it('with two models alternates by rank, for one embedding each', async () => {
    const { inference, newCollection, add, search } = await library()
    const [a, b] = [await newCollection('a'), await newCollection('b', 'embed-other')]
    for (const [ordinal, text] of ['The harbour.', 'A harbour by the sea.', 'Of a harbour that was lost.'].entries()) {
      await add(a, text, `a${ordinal}.txt`)
      await add(b, `${text} Again.`, `b${ordinal}.txt`)
    }
    const { hits, cost } = await search({ collectionIds: [a, b], limit: 4 })
    const collectionIds = hits.map(({ chunk }) => chunk.collectionId)
    expect([new Set(collectionIds.slice(0, 2)).size, new Set(collectionIds.slice(2)).size, collectionIds.length]).toEqual([2, 2, 4])
    expect([inference.embeddings, cost]).toEqual([2, 6n])
    inference.embeddings = 0
    expect((await search({ collectionIds: [a, b], mode: 'lexical' })).cost).toBe(0n)
    expect(inference.embeddings).toBe(0)
  })

  it('is refused with an unknown one, none, too many, or both ways of naming them', async () => {
    const { newCollection, search } = await library()
    const a = await newCollection('a')
    await expect(search({ collectionIds: [a, 'col_x'] })).rejects.toMatchObject({ code: 'not_found', param: 'input.collectionIds' })
    const param = 'input.collectionIds'
    await expect(search({ collectionIds: [] })).rejects.toMatchObject({ code: 'invalid_request', param })
    await expect(search({})).rejects.toMatchObject({ code: 'invalid_request', param })
    await expect(search({ collectionId: a, collectionIds: [a] })).rejects.toMatchObject({ code: 'invalid_request', param })
    const many = Array.from({ length: 11 }, (_, i) => `col_${i}`)
    await expect(search({ collectionIds: many })).rejects.toMatchObject({ code: 'array_above_max_length', param })
  })
})

describe('Reranker of a search', () => {
  const createLibrary = async (rerankModel: string | null = null) => {
    const created = await library()
    const collectionId = await created.newCollection('a', 'embed', rerankModel)
    await created.add(collectionId, 'The harbour.', 'a.txt')
    await created.add(collectionId, 'Something about a harbour of the south.', 'b.txt')
    created.inference.rerank = (text) => (text.includes('south') ? 0.9 : 0.1)
    return { ...created, collectionId }
  }

  it('orders the hits, sets their scores, and is paid beside the embedding', async () => {
    const { collectionId, search } = await createLibrary()
    const { hits, rerank, cost } = await search({ collectionId, rerankModel: 'rank' })
    expect(hits.map(({ ranked }) => ranked.score)).toEqual([0.9, 0.1])
    expect(hits[0]!.chunk.text).toContain('south')
    expect([rerank, cost]).toEqual([{ modelId: 'rank', applied: true, error: null }, 10n])
    expect(await search({ collectionId })).toMatchObject({ rerank: null, cost: 3n })
  })

  it('considers more than the limit', async () => {
    const { collectionId, texts } = await createLibrary()
    expect(await texts({ collectionId, rerankModel: 'rank', limit: 1 })).toEqual(['Something about a harbour of the south.'])
  })

  it('is that of the collection unless the search names another, or none, or is free', async () => {
    const { collectionId, search } = await createLibrary('rank')
    const by = async (more: Partial<SearchInput>) => (await search({ collectionId, ...more })).rerank?.modelId ?? null
    expect(await by({})).toBe('rank')
    expect(await by({ rerankModel: 'rank-2' })).toBe('rank-2')
    expect(await by({ rerankModel: null })).toBeNull()
    expect(await by({ mode: 'lexical' })).toBeNull()
    expect(await by({ mode: 'lexical', rerankModel: 'rank' })).toBe('rank')
  })

  it('of several collections applies if it is the same', async () => {
    const { collectionId, newCollection, search } = await createLibrary('rank')
    const same = await newCollection('same', 'embed', 'rank')
    const none = await newCollection('none')
    expect((await search({ collectionIds: [collectionId, same] })).rerank?.modelId).toBe('rank')
    expect((await search({ collectionIds: [collectionId, none] })).rerank).toBeNull()
  })

  it('falls back to the plain order when it fails, with a warning in the result', async () => {
    const { collectionId, inference, search } = await createLibrary('rank')
    const plain = (await search({ collectionId, rerankModel: null })).hits
    for (const code of ['engine_timeout', 'insufficient_quota', 'engine_error'] as const) {
      inference.rerank = new KisError(code, 'no')
      const { hits, rerank, cost } = await search({ collectionId })
      expect(hits).toEqual(plain)
      expect([rerank, cost]).toEqual([{ modelId: 'rank', applied: false, error: code }, 3n])
    }
  })

  it('that the key may not use is an error if the search names it, and reported if the collection does', async () => {
    const { collectionId, search, inference } = await createLibrary('rank')
    const refused = search({ collectionId, rerankModel: 'unknown' })
    await expect(refused).rejects.toMatchObject({ code: 'model_not_found', param: 'input.rerankModel' })
    inference.rerank = new KisError('residency_policy_violation', 'no')
    expect((await search({ collectionId })).rerank).toEqual({ modelId: 'rank', applied: false, error: 'residency_policy_violation' })
    const named = search({ collectionId, rerankModel: 'rank' })
    await expect(named).rejects.toMatchObject({ code: 'residency_policy_violation', param: 'input.rerankModel' })
  })

  it('is changed and removed, and must be a rerank model', async () => {
    const { collectionId, deps } = await createLibrary()
    const change = (rerankModel: string | null) => updateCollection(deps, createContext(), { id: collectionId, rerankModel })
    expect((await change('rank')).rerankModel).toBe('rank')
    await expect(change('embed')).rejects.toMatchObject({ code: 'model_not_found', param: 'input.rerankModel' })
    expect((await change(null)).rerankModel).toBeNull()
  })
})

describe('Query with a conversation', () => {
  const history = [{ role: 'user', content: 'What is at the harbour?' }] as const
  const createLibrary = async () => {
    const created = await library()
    const collectionId = await created.newCollection('a')
    await created.add(collectionId, 'The harbour.', 'a.txt')
    await created.add(collectionId, 'The kiln.', 'b.txt')
    return { ...created, collectionId }
  }

  it('is searched as rewritten by a chat model, which is paid beside the embedding', async () => {
    const { inference, collectionId, search } = await createLibrary()
    inference.rewritten = 'harbour'
    const { hits, rewrite, cost } = await search({ collectionId, query: 'and there?', history, rewriteModel: 'chat', mode: 'lexical' })
    expect(hits.map(({ chunk }) => chunk.text)).toEqual(['The harbour.'])
    expect([rewrite, cost]).toEqual([{ query: 'harbour', applied: true, error: null }, 11n])
  })

  it('is searched unchanged when the model fails, with a warning in the result', async () => {
    const { inference, collectionId, search } = await createLibrary()
    inference.rewritten = new KisError('engine_timeout', 'no')
    const { hits, rewrite } = await search({ collectionId, query: 'kiln', history, rewriteModel: 'chat', mode: 'lexical' })
    expect(hits.map(({ chunk }) => chunk.text)).toEqual(['The kiln.'])
    expect(rewrite).toEqual({ query: 'kiln', applied: false, error: 'engine_timeout' })
  })

  it('is refused where the key may not call the model, and without a model', async () => {
    const { inference, collectionId, search } = await createLibrary()
    for (const code of ['permission_denied', 'model_not_found', 'residency_policy_violation'] as const) {
      inference.rewritten = new KisError(code, 'no')
      await expect(search({ collectionId, history, rewriteModel: 'chat' })).rejects.toMatchObject({ code, param: 'input.rewriteModel' })
    }
    await expect(search({ collectionId, history })).rejects.toMatchObject({
      code: 'missing_required_parameter',
      param: 'input.rewriteModel',
    })
    const many = Array.from({ length: 21 }, () => history[0])
    await expect(search({ collectionId, history: many, rewriteModel: 'chat' })).rejects.toMatchObject({ code: 'array_above_max_length' })
    expect((await search({ collectionId, history: [], rewriteModel: 'chat' })).rewrite).toBeNull()
  })
})

describe('Search result', () => {
  it('omits hits below the minimum score', async () => {
    const { newCollection, add, search } = await library()
    const collectionId = await newCollection('a')
    await add(collectionId, 'The harbour.', 'a.txt')
    await add(collectionId, 'Kilns and nothing else.', 'b.txt')
    const all = (await search({ collectionId })).hits
    const minScore = all[0]!.ranked.score
    expect((await search({ collectionId, minScore })).hits).toEqual(all.filter(({ ranked }) => ranked.score >= minScore))
    expect((await search({ collectionId, minScore: 2 })).hits).toEqual([])
  })

  it('includes the neighbors of a hit, as many as exist', async () => {
    const { newCollection, add, search } = await library()
    const collectionId = await newCollection('a')
    await add(collectionId, paragraphs(6), 'a.txt')
    const around = async (query: string, expand: number) => {
      const [hit] = (await search({ collectionId, query, expand, limit: 1, mode: 'lexical' })).hits
      return [hit!.before, [hit!.chunk], hit!.after].map((chunks) => chunks.map(({ ordinal }) => ordinal))
    }
    expect(await around('matter2x1', 0)).toEqual([[], [2], []])
    expect(await around('matter2x1', 1)).toEqual([[1], [2], [3]])
    expect(await around('matter1x1', 3)).toEqual([[0], [1], [2, 3, 4]])
    expect(await around('matter5x1', 2)).toEqual([[3, 4], [5], []])
    await expect(around('matter5x1', 4)).rejects.toMatchObject({ code: 'integer_above_max_value', param: 'input.expand' })
  })

  it('highlights the words of the query', async () => {
    const { newCollection, add, search } = await library()
    const collectionId = await newCollection('a')
    await add(collectionId, 'Old harbours of Oman.', 'a.txt')
    const [hit] = (await search({ collectionId })).hits
    expect(hit!.highlights.map(({ start, end }) => hit!.chunk.text.slice(start, end))).toEqual(['harbours'])
  })

  it('is grouped by document, with the best hits of each', async () => {
    const { newCollection, add, search } = await library()
    const collectionId = await newCollection('a')
    const long = await add(collectionId, paragraphs(5, 'harbour'), 'long.txt')
    const short = await add(collectionId, 'A harbour0x1 in short.', 'short.txt')
    const input = { collectionId, query: 'harbour0x1', groupBy: 'document', hitsPerDocument: 2 } as const
    const { groups, hits } = await search(input)
    expect(new Set(groups!.map(({ document }) => document._id))).toEqual(new Set([long, short]))
    expect(groups!.find(({ document }) => document._id === long)!.hits).toHaveLength(2)
    expect(hits).toEqual(groups!.flatMap((group) => group.hits))
    expect((await search({ ...input, limit: 1 })).groups).toHaveLength(1)
    expect((await search({ collectionId })).groups).toBeNull()
  })

  it('counts the values of fields among the documents', async () => {
    const { newCollection, add, search } = await library()
    const collectionId = await newCollection('a')
    await add(collectionId, 'The harbour of Sur was rebuilt.', 'a.txt', { القسم: 'الموانئ', year: 2024 })
    await add(collectionId, 'The harbour of Muscat was rebuilt.', 'b.txt', { القسم: 'الموانئ' })
    await add(collectionId, 'The harbour of Salalah was rebuilt.', 'c.txt', { القسم: 'المالية' })
    const { facets } = await search({ collectionId, limit: 1, facets: ['metadata.القسم', 'metadata.year', 'media_type', 'metadata.none'] })
    expect(facets).toEqual([
      {
        field: 'metadata.القسم',
        values: [
          { value: 'الموانئ', documents: 2 },
          { value: 'المالية', documents: 1 },
        ],
      },
      { field: 'metadata.year', values: [{ value: 2024, documents: 1 }] },
      {
        field: 'media_type',
        values: [{ value: 'text/plain', documents: 3 }],
      },
      { field: 'metadata.none', values: [] },
    ])
    await expect(search({ collectionId, facets: ['text'] })).rejects.toMatchObject({ code: 'unsupported_value', param: 'input.facets[0]' })
  })

  it('depends on the weight of words', async () => {
    const { newCollection, add, texts } = await library()
    const collectionId = await newCollection('a')
    await add(collectionId, 'The kiln, the kiln, the kiln and the kiln are of the town.', 'a.txt')
    await add(collectionId, 'This is what the potter of the harbour was.', 'b.txt')
    const query = 'potter harbour kiln kiln kiln kiln'
    const byMeaning = await texts({ collectionId, query, mode: 'vector' })
    expect(await texts({ collectionId, query, lexicalWeight: 0 })).toEqual(byMeaning)
    expect(await texts({ collectionId, query, lexicalWeight: 10 })).toEqual(byMeaning.toReversed())
  })
})

it('filters by substrings, Arabic field names, numbers and times', async () => {
  const { newCollection, add, search } = await library()
  const collectionId = await newCollection('a')
  await add(collectionId, 'The harbour of Sur.', 'دليل الموظف 2024.txt', { القسم: 'شؤون الموظفين', price: 20 })
  await add(collectionId, 'The harbour of Muscat.', 'Annual_REPORT 100%.txt', { price: 7 })
  const names = async (filter: unknown) => (await search({ collectionId, filter })).hits.map(({ document }) => document.fileName)
  const [arabic, english] = ['دليل الموظف 2024.txt', 'Annual_REPORT 100%.txt']
  expect(await names({ op: 'contains', field: 'file_name', value: 'الموظف' })).toEqual([arabic])
  expect(await names({ op: 'contains', field: 'file_name', value: 'report' })).toEqual([english])
  expect(await names({ op: 'contains', field: 'file_name', value: '100%' })).toEqual([english])
  expect(await names({ op: 'contains', field: 'file_name', value: 'l_R' })).toEqual([english])
  expect(await names({ op: 'contains', field: 'file_name', value: 'a.b*' })).toEqual([])
  expect(await names({ op: 'contains', field: 'metadata.القسم', value: 'الموظفين' })).toEqual([arabic])
  expect(await names({ 'metadata.القسم': 'شؤون الموظفين' })).toEqual([arabic])
  expect(await names({ op: 'gt', field: 'metadata.price', value: 7 })).toEqual([arabic])
  expect(await names({ op: 'lt', field: 'created_at', value: '2001-01-01' })).toEqual([])
  for (const [value, code] of [
    ['', 'invalid_type'],
    [7, 'invalid_type'],
    ['x'.repeat(101), 'string_above_max_length'],
  ] as const)
    await expect(names({ op: 'contains', field: 'file_name', value })).rejects.toMatchObject({ code })
  await expect(names({ op: 'contains', field: 'page', value: '1' })).rejects.toMatchObject({ code: 'unsupported_value' })
})
