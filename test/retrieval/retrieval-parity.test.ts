import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { EMBEDDING_TIMEOUT_MS, EvalSearch } from '../support/data/eval-search.ts'
import { evalData } from '../support/data/eval-vectors.ts'
import { mean } from '../support/data/ndcg.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { soaking } from '../support/soak.ts'

const data = await evalData()
const name = 'Elasticsearch beside SQLite over XQuAD'
const title = data ? name : `${name} (skipped: ../shared/eval is not beside this project)`
/** A third of the 612 questions; all of them in `npm run soak`. */
const EVERY = soaking ? 1 : 3
const TIMEOUT_MS = 300_000

await onEngine(ELASTICSEARCH, name, (url) => {
  describe.skipIf(!data)(title, () => parity(url))
})

function parity(url: string): void {
  const { newPrefix, dropAll } = testIndices(url)
  let folder: string
  let sqlite: ChunkIndex
  let elasticsearch: ChunkIndex
  let benchmark: EvalSearch

  beforeAll(async () => {
    benchmark = await EvalSearch.of({ ...data!, questions: data!.questions.filter((_, i) => i % EVERY === 0) })
    folder = await mkdtemp(join(tmpdir(), 'kis-parity-'))
    sqlite = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    const size = { shards: 2, replicas: 0 }
    elasticsearch = await openElasticsearchChunkIndex({ url, prefix: newPrefix(), size, log: silentLog })
    await Promise.all([benchmark.fill(sqlite), benchmark.fill(elasticsearch)])
  }, EMBEDDING_TIMEOUT_MS)

  afterAll(async () => {
    await elasticsearch?.[Symbol.asyncDispose]()
    await sqlite?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
    await dropAll()
  })

  for (const [from, pool, mode] of [
    ['ar', 'ar', 'hybrid'],
    ['en', 'en', 'hybrid'],
    ['ar', 'en', 'hybrid'],
    ['en', 'ar', 'hybrid'],
    ['ar', 'both', 'hybrid'],
    ['en', 'both', 'hybrid'],
    ['ar', 'ar', 'lexical'],
    ['en', 'en', 'lexical'],
  ] as const) {
    it(
      `finds the same as SQLite for ${from} questions over ${pool} paragraphs in ${mode} mode`,
      async () => {
        const [theirs, ours] = await Promise.all([
          benchmark.topTens(sqlite, from, pool, mode),
          benchmark.topTens(elasticsearch, from, pool, mode),
        ])
        const overlap = mean(ours.map((found, i) => found.filter((id) => theirs[i]!.includes(id)).length / Math.max(1, theirs[i]!.length)))
        const [reached, expected] = [benchmark.ndcg(ours, from, pool), benchmark.ndcg(theirs, from, pool)]
        const figures = `overlap ${overlap.toFixed(4)}, nDCG@10 ${reached.toFixed(4)} beside ${expected.toFixed(4)}`
        console.info(`${mode} ${from}→${pool}: ${figures}`)
        expect(overlap).toBeGreaterThanOrEqual(0.95)
        expect(Math.abs(reached - expected)).toBeLessThanOrEqual(0.005)
      },
      TIMEOUT_MS,
    )
  }
}
