import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { fuse } from '../../subgraphs/knowledge/domain/search/fuse.ts'
import { createAim } from '../../subgraphs/knowledge/domain/search/query-vectors.ts'
import type { SearchFilter } from '../../subgraphs/knowledge/domain/search/search-filter.ts'
import { queryTerms } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { Question } from './eval-chunks.ts'

/**
 * Searches an existing index in a process of its own, to measure the memory of searching. Arguments: kind, location,
 * prefix.
 */

export interface Searches {
  readonly questions: readonly Question[]
  /** `vector`: the vector search alone. */
  readonly mode: 'hybrid' | 'vector'
  readonly filter: SearchFilter | null
  /** Concurrent searches. */
  readonly atOnce: number
}

export interface Searched {
  /** Time of each search in ms, by question. */
  readonly times: readonly number[]
  /** CPU time of all threads, for all questions. */
  readonly cpuMs: number
  /** IDs of the ten best chunks for each question. */
  readonly topTens: readonly (readonly string[])[]
  readonly rssBytes: number
}

/** Candidates, the same number that the service requests for its model. */
const CANDIDATES = 100
const SPREAD = 0.03

const [kind, location, prefix] = process.argv.slice(2)
const index =
  kind === 'sqlite'
    ? await openSqliteChunkIndex({ file: location!, log: silentLog })
    : await openElasticsearchChunkIndex({ url: location!, prefix, size: { shards: 1, replicas: 0 }, log: silentLog })

async function run({ questions, mode, filter, atOnce }: Searches): Promise<Searched> {
  const times: number[] = []
  const topTens: string[][] = []
  const before = process.cpuUsage()
  let next = 0
  const worker = async () => {
    for (let i = next++; i < questions.length; i = next++) {
      const { collectionId, vector, text } = questions[i]!
      const start = performance.now()
      const terms = mode === 'hybrid' ? queryTerms(text) : { words: [], grams: [] }
      const query = { collectionId, vector: Float32Array.from(vector), ...terms, candidates: CANDIDATES, filter }
      const aim = createAim(query.vector, null, null)
      const best = fuse(await index.search(query, new AbortController().signal), { aim, spread: SPREAD, mode, limit: 10, language: null })
      times[i] = performance.now() - start
      topTens[i] = best.map(({ chunkId }) => chunkId)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  const { user, system } = process.cpuUsage(before)
  return { times, cpuMs: (user + system) / 1_000, topTens, rssBytes: process.memoryUsage.rss() }
}

process.on('message', async (searches: Searches) => process.send!(await run(searches)))
process.on('disconnect', () => process.exit())
