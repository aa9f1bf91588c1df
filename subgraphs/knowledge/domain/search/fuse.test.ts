import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChunkCandidate } from '../../ports/chunk-index.ts'
import { fuse, type SearchMode } from './fuse.ts'
import { createAim } from './query-vectors.ts'

function candidate(chunkId: string, language: string | null, cosine: number | null, wordCoverage = 0, gramCoverage = 0): ChunkCandidate {
  return { chunkId, documentId: 'doc', generation: 'g', language, cosine, anchorCosine: null, wordCoverage, gramCoverage }
}

const aim = createAim(Float32Array.of(1), null, null)
const options = (mode: SearchMode, spread: number | null = 0.03) => ({ aim, spread, mode, limit: 10, language: 'en' }) as const

const ids = (candidates: readonly ChunkCandidate[], mode: SearchMode = 'hybrid', spread: number | null = 0.03) =>
  fuse(candidates, options(mode, spread)).map(({ chunkId }) => chunkId)

describe('Hybrid score fusion', () => {
  it('reorders the chunks of one language by words', () => {
    expect(ids([candidate('a', 'en', 0.85), candidate('b', 'en', 0.84, 0.9, 0.9)])).toEqual(['b', 'a'])
  })

  it('assigns the k-th of a language by sum the k-th best cosine of that language', () => {
    const hits = fuse([candidate('a', 'en', 0.85), candidate('b', 'en', 0.84, 0.9, 0.9)], options('hybrid'))
    expect(hits).toMatchObject([
      { chunkId: 'b', score: 0.85, lexicalRank: 1, vectorRank: 2 },
      { chunkId: 'a', score: 0.84, lexicalRank: null, vectorRank: 1 },
    ])
  })

  it('never lets words decide between languages', () => {
    expect(ids([candidate('ar', 'ar', 0.9), candidate('en', 'en', 0.8, 1, 1)])).toEqual(['ar', 'en'])
  })

  it('ranks chunks without a language among those of the language of the query', () => {
    expect(ids([candidate('en', 'en', 0.8, 1, 1), candidate('none', null, 0.82), candidate('ar', 'ar', 0.81)])).toEqual([
      'en',
      'ar',
      'none',
    ])
  })

  it('lets evidence from the texts decide across languages', () => {
    const all = [candidate('ar', 'ar', 0.9), candidate('en', 'en', 0.8), candidate('junk', 'en', 0.85)]
    const evidence = new Map([
      ['en', 0.15],
      ['junk', -0.1],
    ])
    expect(fuse(all, { ...options('hybrid'), evidence }).map(({ chunkId }) => chunkId)).toEqual(['en', 'ar', 'junk'])
    expect(
      fuse([candidate('a', 'en', null, 1), candidate('b', 'en', null, 0.9)], { ...options('lexical'), evidence: new Map([['a', -0.06]]) }),
    ).toMatchObject([{ chunkId: 'b' }, { chunkId: 'a' }])
  })

  it('reorders only chunks of the other language by token similarity, within their own ranks', () => {
    const all = [candidate('a', 'ar', 0.9), candidate('b', 'ar', 0.89), candidate('en', 'en', 0.895), candidate('last', 'en', 0.8)]
    const tokenCloseness = new Map([
      ['b', 0.05],
      ['last', 0.2],
    ])
    const hits = fuse(all, { ...options('hybrid'), tokenCloseness })
    expect(hits.map(({ chunkId, score }) => [chunkId, score])).toEqual([
      ['b', 0.9],
      ['en', 0.895],
      ['a', 0.89],
      ['last', 0.8],
    ])
  })

  it('reorders only chunks of the language of the query by adjacent words', () => {
    const all = [candidate('a', 'en', 0.85), candidate('b', 'en', 0.845), candidate('c', 'ar', 0.84), candidate('d', 'ar', 0.835)]
    const wordPairs = new Map([
      ['b', 1],
      ['d', 1],
    ])
    const hits = fuse(all, { ...options('hybrid'), wordPairs })
    expect(hits.map(({ chunkId, score }) => [chunkId, score])).toEqual([
      ['b', 0.85],
      ['a', 0.845],
      ['c', 0.84],
      ['d', 0.835],
    ])
  })

  it('uses the spread of the candidates where the model has none', () => {
    const close = [candidate('a', 'en', 0.3), candidate('b', 'en', 0.29, 0.5), candidate('c', 'en', -0.9)]
    expect(ids(close, 'hybrid', null)).toEqual(['b', 'a', 'c'])
    expect(ids(close, 'hybrid', 0.001)).toEqual(['a', 'b', 'c'])
    expect(ids([candidate('a', 'en', 0.5), candidate('b', 'en', 0.5, 1)], 'hybrid', null)).toEqual(['b', 'a'])
  })

  it('omits chunks without a score in the lexical and vector modes', () => {
    const some = [candidate('a', 'en', 0.9), candidate('b', 'ar', null, 0.1), candidate('c', 'en', 0.5, 0, 0.3)]
    expect(fuse(some, options('lexical'))).toMatchObject([
      { chunkId: 'c', lexicalRank: 1, vectorRank: null },
      { chunkId: 'b', lexicalRank: 2, vectorRank: null },
    ])
    expect(fuse(some, options('vector'))).toMatchObject([
      { chunkId: 'a', score: 0.9, lexicalRank: null, vectorRank: 1 },
      { chunkId: 'c', score: 0.5, lexicalRank: null, vectorRank: 2 },
    ])
  })

  describe('relevance scores', () => {
    const anchor = Float32Array.of(0)
    const calibrated = createAim(Float32Array.of(1), 'en', { arabicAnchor: anchor, englishAnchor: anchor, midpoint: 0.12, slope: 40 })
    const score = (candidates: readonly ChunkCandidate[], mode: SearchMode = 'hybrid') =>
      fuse(candidates, { ...options(mode), aim: calibrated }).map(({ chunkId, score, relevance }) => [chunkId, score, relevance] as const)
    const noise = Array.from({ length: 9 }, (_, i) => candidate(`n${i}`, 'en', 0.02, 0.1, 0.1))

    it('are high for an outstanding chunk, in each mode', () => {
      for (const mode of ['hybrid', 'vector', 'lexical'] as const) {
        const [first, second] = score([candidate('right', 'en', 0.2, 0.8, 0.8), ...noise], mode)
        expect(first).toEqual(['right', expect.closeTo(1, 1), 'strong'])
        expect(second![1]).toBeLessThan(0.1)
        expect(second![2]).toBe('weak')
      }
    })

    it('are high for an exact match with a weak vector', () => {
      const [first] = score([candidate('right', 'en', 0.03, 1, 1), ...noise])
      expect(first).toEqual(['right', expect.closeTo(1, 1), 'strong'])
    })

    it('are high for each of many good chunks', () => {
      const all = score(Array.from({ length: 10 }, (_, i) => candidate(`c${i}`, 'en', 0.2, 0.6, 0.6)))
      expect(all.map(([, , relevance]) => relevance)).toEqual(Array(10).fill('strong'))
    })

    it('are high for the only chunk of a collection if it matches, and low if not', () => {
      expect(score([candidate('right', 'en', 0.2, 0.6, 0.6)])[0]![2]).toBe('strong')
      expect(score([candidate('wrong', 'en', 0.02, 0.1, 0.1)])[0]![2]).toBe('weak')
    })

    it('never rise from one hit to the next, and do not depend on the limit', () => {
      const all = [candidate('junk', 'en', 0.2, 0.9, 0.9), candidate('a', 'ar', 0.19), candidate('b', 'en', 0.05, 0.7, 0.7), ...noise]
      const evidence = new Map([['a', 0.3]])
      const scores = (limit: number) => fuse(all, { ...options('hybrid'), aim: calibrated, evidence, limit }).map(({ score }) => score)
      expect(scores(10)).toEqual(scores(10).toSorted((a, b) => b - a))
      expect(scores(2)).toEqual(scores(10).slice(0, 2))
    })

    it('do not depend on the weight of words', () => {
      const all = [candidate('right', 'en', 0.2, 0.8, 0.8), ...noise]
      const of = (lexicalWeight: number) => fuse(all, { ...options('hybrid'), aim: calibrated, lexicalWeight })[0]!.score
      expect(of(10)).toBe(of(1))
    })

    it('are cosines, without a relevance, for a model without calibration', () => {
      const hits = fuse([candidate('a', 'en', 0.4, 1, 1), candidate('b', 'en', -0.2)], options('hybrid'))
      expect(hits).toMatchObject([
        { score: 0.4, relevance: null },
        { score: 0, relevance: null },
      ])
    })
  })

  it('does not depend on the order of the candidates, and respects the limit', () => {
    const level = fc.constantFrom(0, 0.25, 0.5)
    const candidates = fc.uniqueArray(
      fc.record({ id: fc.nat(99), language: fc.constantFrom('ar', 'en', null), cosine: level, word: level, gram: level }),
      { selector: ({ id }) => id },
    )
    fc.assert(
      fc.property(
        candidates,
        fc.constantFrom<SearchMode>('hybrid', 'vector', 'lexical'),
        fc.integer({ min: 1, max: 20 }),
        (drawn, mode, limit) => {
          const all = drawn.map(({ id, language, cosine, word, gram }) => candidate(`c${id}`, language, cosine, word, gram))
          const hits = fuse(all, { ...options(mode), limit })
          expect(fuse(all.toReversed(), { ...options(mode), limit })).toEqual(hits)
          expect(hits.length).toBeLessThanOrEqual(limit)
          expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a))
        },
      ),
    )
  })
})
