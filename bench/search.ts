import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { takeAim } from '../subgraphs/knowledge/domain/search/aim.ts'
import { fuse } from '../subgraphs/knowledge/domain/search/fuse.ts'
import { grams, queryTerms, words } from '../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex, IndexedChunk } from '../subgraphs/knowledge/ports/chunk-index.ts'
import type { BenchRow } from './row.ts'
import { seeded, wordSource } from './support/words.ts'

const DIMENSIONS = 384
const WORDS_PER_CHUNK = 130
const WORDS_PER_QUERY = 8
const QUERIES = 200
const PER_PUT = 256
const CANDIDATES = 100
const SPREAD = 0.03

interface Question {
  readonly collectionId: string
  readonly text: string
  readonly vector: Float32Array
}

/**
 * Hybrid search in the embedded index, without embedding the query: in one collection of `chunks`, and with the same
 * chunks in five.
 */
export async function benchSearch({ chunks = 50_000 }: { readonly chunks?: number } = {}): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-search-'))
  try {
    await using index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    const random = seeded(1)
    const corpus = makeCorpus(chunks, random)
    const five = Array.from({ length: 5 }, (_, i) => `five-${i}`)
    await fill(index, 'one', corpus)
    for (const [i, collectionId] of five.entries()) await fill(index, collectionId, corpus.slice((i * chunks) / 5, ((i + 1) * chunks) / 5))

    // As people do, questions use words of one of the passages.
    const questions = Array.from({ length: QUERIES }, (_, i): Question => {
      const from = corpus[Math.floor(random() * chunks)]!.text.split(' ')
      const text = Array.from({ length: WORDS_PER_QUERY }, () => from[Math.floor(random() * from.length)]).join(' ')
      return { collectionId: five[i % 5]!, text, vector: unitVector(random) }
    })
    const scan = plainScan(corpus)
    const inOne = questions.map((question) => ({ ...question, collectionId: 'one' }))
    const [hybridOne, scanned] = await measured(inOne, [(question) => hybrid(index, question), async ({ vector }) => scan(vector)])
    const [hybridFive] = await measured(questions, [(question) => hybrid(index, question)])
    return [
      {
        what: `hybrid search, ${chunks} chunks in one collection`,
        figure: hybridOne!,
        bar: 'p95 ≤ 60 ms',
        beside: `plain exact scan in memory, vectors alone: ${scanned}`,
      },
      {
        what: `hybrid search, ${chunks} chunks in five collections`,
        figure: hybridFive!,
        bar: 'p95 ≤ 60 ms',
        beside: 'the same questions over one of the five',
      },
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function hybrid(index: ChunkIndex, { collectionId, text, vector }: Question): Promise<unknown> {
  const query = { collectionId, vector, ...queryTerms(text), candidates: CANDIDATES, filter: null }
  return fuse(await index.search(query, new AbortController().signal), {
    aim: takeAim(vector, null, null),
    spread: SPREAD,
    mode: 'hybrid',
    limit: 10,
    language: null,
  })
}

/** Takes turns, so that other load on the machine affects all alike. */
async function measured(questions: readonly Question[], ways: readonly ((question: Question) => Promise<unknown>)[]): Promise<string[]> {
  const times = ways.map((): number[] => [])
  for (const question of questions) {
    for (const [i, way] of ways.entries()) {
      const start = performance.now()
      await way(question)
      times[i]!.push(performance.now() - start)
    }
  }
  return times.map((taken) => {
    const ascending = taken.toSorted((a, b) => a - b)
    const at = (share: number) => ascending[Math.floor(share * (ascending.length - 1))]!.toFixed(1)
    return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms`
  })
}

/** The least work of a search without an index: every cosine, one after another, over float32 in memory. */
function plainScan(corpus: readonly IndexedChunk[]): (query: Float32Array) => number {
  const all = new Float32Array(corpus.length * DIMENSIONS)
  for (const [i, { vector }] of corpus.entries()) all.set(vector, i * DIMENSIONS)
  return (query) => {
    let best = Number.NEGATIVE_INFINITY
    for (let start = 0; start < all.length; start += DIMENSIONS) {
      let dot = 0
      for (let i = 0; i < DIMENSIONS; i++) dot += all[start + i]! * query[i]!
      if (dot > best) best = dot
    }
    return best
  }
}

async function fill(index: ChunkIndex, collectionId: string, corpus: readonly IndexedChunk[]): Promise<void> {
  await index.createCollection({ organizationId: 'org', collectionId, dimensions: DIMENSIONS })
  for (let at = 0; at < corpus.length; at += PER_PUT) {
    const document = { organizationId: 'org', collectionId, documentId: `doc-${at}`, generation: 'g', attributes: {} }
    await index.put(document, corpus.slice(at, at + PER_PUT))
  }
}

function makeCorpus(count: number, random: () => number): readonly IndexedChunk[] {
  const draw = wordSource(random)
  return Array.from({ length: count }, (_, ordinal) => {
    const text = Array.from({ length: WORDS_PER_CHUNK }, draw).join(' ')
    return {
      chunkId: `chunk-${ordinal}`,
      ordinal,
      text,
      headingPath: [],
      context: '',
      pageStart: null,
      pageEnd: null,
      charStart: 0,
      charEnd: text.length,
      language: ordinal % 2 ? 'ar' : 'en',
      vector: unitVector(random),
      words: words(text),
      grams: grams(text),
    }
  })
}

function unitVector(random: () => number): Float32Array {
  const raw = Float32Array.from({ length: DIMENSIONS }, () => random() + random() + random() - 1.5)
  const length = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0))
  return raw.map((x) => x / length)
}
