import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EvalChunks } from '../../bench/support/eval-chunks.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { SearchFilter } from '../../subgraphs/knowledge/domain/search/search-filter.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { EMBEDDING_TIMEOUT_MS } from '../support/data/eval-search.ts'
import { evalData } from '../support/data/eval-vectors.ts'
import { full } from '../support/soak.ts'

const data = await evalData()
const title = data
  ? 'Vector search of the embedded index'
  : 'Vector search of the embedded index (skipped: ../shared/eval is not beside this project)'
/** `npm run soak`: 200,000. */
const CHUNKS = full(200_000)
const COLLECTION = { collectionId: 'noise', chunks: CHUNKS, seed: 1, hasReal: true }
const QUESTIONS = 100
const BEST = 10
/** As the service asks for. */
const CANDIDATES = 100
const SHELF: SearchFilter = { op: 'eq', field: 'metadata.shelf', value: 3 }
const TIMEOUT_MS = 120_000
/** Embedding, and then writing the passages. */
const FILLING_TIMEOUT_MS = EMBEDDING_TIMEOUT_MS + full(1_200_000)

describe.skipIf(!data)(title, () => {
  let folder: string
  let index: ChunkIndex
  let questions: readonly Float32Array[]
  /** All vectors one after another, as floats. */
  let floats: Float32Array
  const ids: string[] = []
  const isOnShelf: boolean[] = []

  beforeAll(async () => {
    const evalChunks = await EvalChunks.of(data!)
    questions = evalChunks.questions(['noise'], QUESTIONS).map(({ vector }) => Float32Array.from(vector))
    floats = new Float32Array(CHUNKS * evalChunks.dimensions)
    folder = await mkdtemp(join(tmpdir(), 'kis-recall-'))
    index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    await index.createCollection({ organizationId: 'org', collectionId: 'noise', dimensions: evalChunks.dimensions })
    for (const { document, chunks } of evalChunks.documents(COLLECTION)) {
      for (const { chunkId, vector } of chunks) {
        floats.set(vector, ids.length * evalChunks.dimensions)
        ids.push(chunkId)
        isOnShelf.push(document.attributes['metadata.shelf'] === 3)
      }
      await index.put(document, chunks)
    }
  }, FILLING_TIMEOUT_MS)

  afterAll(async () => {
    await index?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  for (const [what, filter] of [
    ['all chunks', null],
    ['those that match a filter, one in ten', SHELF],
  ] as const) {
    it(
      `finds 0.98 of the ten nearest among ${what}, compared with exact float vectors`,
      async () => {
        let found = 0
        for (const vector of questions) {
          const query = { collectionId: 'noise', vector, words: [], grams: [], candidates: CANDIDATES, filter }
          const candidates = await index.search(query, new AbortController().signal)
          const nearest = candidates.toSorted((a, b) => b.cosine! - a.cosine!).slice(0, BEST)
          const exact = nearestTo(vector, filter ? isOnShelf : null)
          found += nearest.filter(({ chunkId }) => exact.has(chunkId)).length
        }
        const recall = found / (QUESTIONS * BEST)
        console.info(`recall@${BEST} of ${CHUNKS} passages, ${what}: ${recall.toFixed(3)}`)
        expect(recall).toBeGreaterThanOrEqual(0.98)
      },
      TIMEOUT_MS,
    )
  }

  function nearestTo(query: Float32Array, among: readonly boolean[] | null): ReadonlySet<string> {
    const dots = new Float64Array(ids.length).fill(-1)
    for (let at = 0; at < ids.length; at++) {
      if (among && !among[at]) continue
      const from = at * query.length
      let dot = 0
      for (let i = 0; i < query.length; i++) dot += floats[from + i]! * query[i]!
      dots[at] = dot
    }
    const best = [...dots.keys()].sort((a, b) => dots[b]! - dots[a]!).slice(0, BEST)
    return new Set(best.map((at) => ids[at]!))
  }
})
