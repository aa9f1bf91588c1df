import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { EMBEDDING_TIMEOUT_MS, EvalSearch } from '../support/data/eval-search.ts'
import { evalData } from '../support/data/eval-vectors.ts'

const data = await evalData()
const title = data ? 'Search over XQuAD, development half' : 'Search over XQuAD (skipped: ../shared/eval is not beside this project)'

describe.skipIf(!data)(title, () => {
  let folder: string
  let index: ChunkIndex
  let benchmark: EvalSearch

  beforeAll(async () => {
    benchmark = await EvalSearch.of(data!)
    folder = await mkdtemp(join(tmpdir(), 'kis-retrieval-'))
    index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    await benchmark.fill(index)
  }, EMBEDDING_TIMEOUT_MS)

  afterAll(async () => {
    await index?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  /** Bars of the design, and of the reference method for its single legs. */
  for (const [from, pool, mode, bar] of [
    ['ar', 'ar', 'hybrid', 0.973],
    ['en', 'en', 'hybrid', 0.985],
    ['ar', 'en', 'hybrid', 0.895],
    ['en', 'ar', 'hybrid', 0.935],
    ['ar', 'both', 'hybrid', 0.91],
    ['en', 'both', 'hybrid', 0.94],
    ['ar', 'ar', 'lexical', 0.955],
    ['en', 'en', 'lexical', 0.965],
    ['ar', 'ar', 'vector', 0.93],
    ['en', 'en', 'vector', 0.97],
  ] as const) {
    it(`reaches nDCG@10 of ${bar} for ${from} questions over ${pool} paragraphs in ${mode} mode`, async () => {
      const reached = benchmark.ndcg(await benchmark.topTens(index, from, pool, mode), from, pool)
      console.info(`${mode} ${from}→${pool}: nDCG@10 ${reached.toFixed(4)}`)
      expect(reached).toBeGreaterThanOrEqual(bar)
    })
  }
})
