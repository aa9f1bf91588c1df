import { expect, it } from 'vitest'
import { createAim } from '../../domain/search/query-vectors.ts'
import type { ChunkCandidate } from '../../ports/chunk-index.ts'
import { type Compared, compareTokens } from './compare-tokens.ts'

const state = (first: number, second: number) => Int8Array.from({ length: 128 }, (_, i) => [first, second][i] ?? 0)
const aim = createAim(Float32Array.of(1), null, null)
const compared: Compared = { tokenEmbeddings: state(127, 0), language: 'ar', mode: 'hybrid', aim }
/** Returns one token embedding of a chunk, by its first sign byte. */
const tokenCode = (first: number) => Int8Array.from({ length: 17 }, (_, i) => [1, first][i] ?? 0)
const stored = new Map([
  ['near', tokenCode(1)],
  ['far', tokenCode(0)],
  ['own', tokenCode(1)],
  ['earlier', state(127, 0)],
])

function candidate(chunkId: string, language: string | null, cosine: number | null = 0.8): ChunkCandidate {
  return { chunkId, documentId: 'doc', generation: 'g', language, cosine, anchorCosine: null, wordCoverage: 0, gramCoverage: 0 }
}

/** Returns the result, and the chunks whose token embeddings were read. */
async function compare(candidates: readonly ChunkCandidate[], more: Partial<Compared> = {}) {
  const read: string[] = []
  const found = await compareTokens(
    async (chunkIds) => {
      read.push(...chunkIds)
      return new Map(chunkIds.flatMap((id) => (stored.has(id) ? [[id, stored.get(id)!] as const] : [])))
    },
    { ...compared, ...more },
    candidates,
  )
  return { found, read }
}

it('reports which chunks in the other language are nearer than their average', async () => {
  const { found, read } = await compare([candidate('near', 'en'), candidate('far', 'en'), candidate('own', 'ar'), candidate('none', null)])
  expect(read).toEqual(['far', 'near'])
  expect(found.get('near')).toBeGreaterThan(0)
  expect(found.get('far')).toBeCloseTo(-found.get('near')!, 10)
})

it('leaves chunks without token embeddings, or with an earlier format, in position', async () => {
  const { found } = await compare([candidate('old', 'en'), candidate('near', 'en'), candidate('far', 'en'), candidate('earlier', 'en')])
  expect([...found.keys()].sort()).toEqual(['far', 'near'])
  const { found: alone } = await compare([candidate('old', 'en'), candidate('near', 'en')])
  expect([...alone]).toEqual([['near', 0]])
})

it('reads the token embeddings of the 40 closest only', async () => {
  const many = Array.from({ length: 50 }, (_, i) => candidate(String(i), 'en', 0.5 + i / 100))
  const { read } = await compare([...many, candidate('unseen', 'en', null)])
  expect(read).toEqual(Array.from({ length: 40 }, (_, i) => String(49 - i)))
})

it.each([
  ['the query has no token embeddings', { tokenEmbeddings: null }],
  ['the query’s language is unknown', { language: null }],
  ['the mode is lexical', { mode: 'lexical', aim: null }],
  ['the mode is vector', { mode: 'vector' }],
] as const)('compares nothing if %s', async (_case, more) => {
  const { found, read } = await compare([candidate('near', 'en'), candidate('far', 'en')], more)
  expect([found.size, read]).toEqual([0, []])
})
