import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { grams, words } from '../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex, IndexedChunk } from '../subgraphs/knowledge/ports/chunk-index.ts'
import { soaking } from '../test/support/soak.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import type { Question } from './support/eval-chunks.ts'
import { quantile } from './support/quantile.ts'
import type { Searched, Searches } from './support/search-process.ts'
import { seeded, wordSource } from './support/words.ts'

const DIMENSIONS = 384
const WORDS_PER_CHUNK = 130
const WORDS_PER_QUERY = 8
const QUERIES = 200
/** Discarded searches: the first of a process compile its code and read the index. */
const WARM_UP = 30
const PER_PUT = 256
const BYTES_PER_MB = 1e6

interface Layout {
  readonly chunks: number
  readonly collections: number
  readonly target: string
}

const LAYOUTS: readonly Layout[] = [
  { chunks: 50_000, collections: 1, target: 'p50 ≤ 30 ms' },
  { chunks: 50_000, collections: 100, target: '' },
]
/** Layouts for `KIS_SOAK=1`: filling them takes minutes. */
const LONG_LAYOUTS: readonly Layout[] = [
  { chunks: 50_000, collections: 1_000, target: '' },
  { chunks: 200_000, collections: 1, target: 'p50 ≤ 80 ms' },
]
/** Number of chunks for comparison with a plain scan of floats in memory. */
const SCANNED = 50_000

/** Measures hybrid search in the embedded index, without embedding the query, in a process of its own. */
export async function benchSearch({ layouts = soaking ? [...LAYOUTS, ...LONG_LAYOUTS] : LAYOUTS } = {}): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const layout of layouts) rows.push(await benchLayout(layout))
  return rows
}

async function benchLayout({ chunks, collections, target }: Layout): Promise<BenchRow> {
  const { times, cpuMs, rssBytes, floats, questions } = await measureSearch(chunks, collections)
  const at = (values: readonly number[], share: number) => `${quantile(values, share).toFixed(1)} ms`
  const load = `load ${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores`
  return {
    what: `hybrid search, ${chunks} chunks in ${collections === 1 ? 'one collection' : `${collections} collections`}`,
    figure: `p50 ${at(times, 0.5)}, p95 ${at(times, 0.95)}, ${(cpuMs / questions.length).toFixed(1)} ms of CPU, ${Math.round(rssBytes / BYTES_PER_MB)} MB; ${load}`,
    target,
    beside: floats ? `plain exact scan in memory, vectors alone: p50 ${at(scanTimes(floats, questions), 0.5)}` : '',
  }
}

/**
 * Measures searches of one collection each, in an index of its own. `floats`: all vectors, if they are few and in one
 * collection.
 */
export async function measureSearch(
  chunks: number,
  collections: number,
): Promise<Searched & { readonly floats: Float32Array | null; readonly questions: readonly Question[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-search-'))
  try {
    const file = join(folder, 'index.sqlite')
    const random = seeded(1)
    const draw = wordSource(random)
    const perCollection = chunks / collections
    const floats = chunks <= SCANNED && collections === 1 ? new Float32Array(chunks * DIMENSIONS) : null
    const questions: Question[] = []
    {
      await using index = await openSqliteChunkIndex({ file, log: silentLog })
      for (let i = 0; i < collections; i++) {
        const collectionId = `collection-${i}`
        await index.createCollection({ organizationId: 'org', collectionId, dimensions: DIMENSIONS })
        for (let at = 0; at < perCollection; at += PER_PUT) {
          const first = i * perCollection + at
          const batch = Array.from({ length: Math.min(PER_PUT, perCollection - at) }, (_, j) => createChunk(first + j, draw, random))
          if (floats) for (const { ordinal, vector } of batch) floats.set(vector, ordinal * DIMENSIONS)
          await put(index, collectionId, first, batch)
          // As people do, questions use words of one of the chunks.
          while (questions.length < ((first + batch.length) / chunks) * (QUERIES + WARM_UP)) {
            const from = batch[Math.floor(random() * batch.length)]!.text.split(' ')
            const text = Array.from({ length: WORDS_PER_QUERY }, () => from[Math.floor(random() * from.length)]).join(' ')
            questions.push({ collectionId, text, vector: [...unitVector(random)] })
          }
        }
      }
    }
    await using searching = new Child('./search-process.ts', ['sqlite', file, ''])
    const search = (batch: readonly Question[]) =>
      searching.request<Searched>({ questions: batch, mode: 'hybrid', filter: null, atOnce: 1 } satisfies Searches)
    await search(questions.slice(0, WARM_UP))
    const measured = questions.slice(WARM_UP)
    return { ...(await search(measured)), floats, questions: measured }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function scanTimes(floats: Float32Array, questions: readonly Question[]): number[] {
  const scan = plainScan(floats)
  return questions.map(({ vector }) => {
    const query = Float32Array.from(vector)
    const start = performance.now()
    scan(query)
    return performance.now() - start
  })
}

/** Returns the least work of a search without an index: every cosine, one after another, over float32 in memory. */
function plainScan(all: Float32Array): (query: Float32Array) => number {
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

async function put(index: ChunkIndex, collectionId: string, first: number, chunks: readonly IndexedChunk[]): Promise<void> {
  await index.put({ organizationId: 'org', collectionId, documentId: `doc-${first}`, generation: 'g', attributes: {} }, chunks)
}

function createChunk(ordinal: number, draw: () => string, random: () => number): IndexedChunk {
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
}

function unitVector(random: () => number): Float32Array {
  const raw = Float32Array.from({ length: DIMENSIONS }, () => random() + random() + random() - 1.5)
  const length = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0))
  return raw.map((x) => x / length)
}
