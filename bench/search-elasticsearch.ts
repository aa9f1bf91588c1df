import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { openSqliteChunkIndex } from '../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import type { SearchFilter } from '../subgraphs/knowledge/domain/search/search-filter.ts'
import type { ChunkIndex } from '../subgraphs/knowledge/ports/chunk-index.ts'
import { evalData } from '../test/support/data/eval-vectors.ts'
import { ELASTICSEARCH, testIndices } from '../test/support/engines/elasticsearch.ts'
import { full } from '../test/support/soak.ts'
import type { BenchRow } from './row.ts'
import { Child } from './support/child.ts'
import { ElasticsearchStats } from './support/elasticsearch-stats.ts'
import { type CollectionSize, EvalChunks, type Put, type Question } from './support/eval-chunks.ts'
import { ExactIndex } from './support/exact-index.ts'
import { p50P95AndP99, quantile } from './support/quantile.ts'
import type { Searched, Searches } from './support/search-process.ts'

const QUESTIONS = 200
/** Discarded searches: the first of a process compile its code and open its connections. */
const WARM_UP = 30
/** Searches of one index before the next one, so that other load on the machine affects all alike. */
const PER_ROUND = 20
const AT_ONCE = 4
/** Concurrent puts, as in ingestion. */
const PUTS_AT_ONCE = 4
const RECALL_TARGET = 0.97
const FILTER: SearchFilter = { op: 'eq', field: 'metadata.shelf', value: 3 }

const VECTOR = { mode: 'vector', filter: null, atOnce: 1 } as const
const HYBRID = { mode: 'hybrid', filter: null, atOnce: 1 } as const
const BYTES_PER_MB = 1e6

/** The indexes to compare. Each is searched by a process of its own. */
interface Sides {
  readonly elasticsearch: Child
  readonly sqlite: Child
  readonly exact: ExactIndex
  readonly stats: ElasticsearchStats
}

interface Layout {
  readonly name: string
  readonly collections: readonly CollectionSize[]
  /** The kinds of searches, each measured separately. */
  readonly queried: readonly { readonly name: string; readonly collectionIds: readonly string[] }[]
}

/**
 * Compares Elasticsearch with its own exact search and with the embedded index, on the same 200,000 chunks: in several
 * collections, then in one.
 */
export async function benchSearchElasticsearch(): Promise<BenchRow[]> {
  const url = process.env[ELASTICSEARCH]
  const data = await evalData()
  if (!url || !data) {
    const reason = url ? '../shared/eval is absent' : `${ELASTICSEARCH} names no engine`
    return [{ what: 'search on Elasticsearch', figure: `not measured: ${reason}`, target: `recall@10 ≥ ${RECALL_TARGET}`, beside: '' }]
  }
  const evalChunks = await EvalChunks.of(data)
  const rows: BenchRow[] = []
  for (const layout of [several(), one()]) rows.push(...(await benchLayout(url, evalChunks, layout)))
  return rows
}

/**
 * A layout in which half of the chunks exist more than once, as when several people upload the same document. Equal
 * vectors are hardest for graphs of vectors.
 */
function several(): Layout {
  const own = (name: string, count: number, chunks: number, seed: number, hasReal = false) =>
    Array.from({ length: count }, (_, i) => ({ collectionId: `${name}-${i}`, chunks: full(chunks), seed: seed + i, hasReal }))
  const copied = (name: string, count: number, chunks: number, seed: number) =>
    own(name, count, chunks, 0).map((size) => ({ ...size, seed }))
  const groups = [
    { name: `50 of ${full(1_000)}`, collections: own('small', 50, 1_000, 1_000) },
    { name: `10 with the same ${full(5_000)}`, collections: copied('ten', 10, 5_000, 2_000) },
    { name: `2 with the same ${full(25_000)}`, collections: copied('two', 2, 25_000, 3_000) },
    { name: `1 of ${full(50_000)}`, collections: own('large', 1, 50_000, 4_000, true) },
  ]
  const collections = groups.flatMap((group) => group.collections)
  return {
    name: `${total(collections)} chunks in ${collections.length} collections`,
    collections,
    queried: groups.map((group) => ({ name: group.name, collectionIds: group.collections.map(({ collectionId }) => collectionId) })),
  }
}

function one(): Layout {
  const collection = { collectionId: 'all', chunks: full(200_000), seed: 1, hasReal: true }
  return {
    name: `${collection.chunks} chunks in one collection`,
    collections: [collection],
    queried: [{ name: 'all', collectionIds: [collection.collectionId] }],
  }
}

async function benchLayout(url: string, evalChunks: EvalChunks, { name, collections, queried }: Layout): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-bench-search-'))
  const { newPrefix, dropAll } = testIndices(url)
  const prefix = newPrefix()
  try {
    await using stats = new ElasticsearchStats(url, `${prefix}-chunks-*`)
    await using exact = await ExactIndex.create(url, `${prefix}-exact`, evalChunks.dimensions)
    const file = join(folder, 'index.sqlite')
    const size = { shards: 1, replicas: 0 }
    const elasticsearchMs = await fill(await openElasticsearchChunkIndex({ url, prefix, size, log: silentLog }), evalChunks, collections)
    const mergingMs = await stats.settled()
    const sqliteMs = await fill(await openSqliteChunkIndex({ file, log: silentLog }), evalChunks, collections)
    for (const collection of collections) for (const put of evalChunks.documents(collection)) await exact.put(put)
    await exact.refresh()

    await using elasticsearch = new Child('search-process.ts', ['elasticsearch', url, prefix])
    await using sqlite = new Child('search-process.ts', ['sqlite', file])
    const sides: Sides = { elasticsearch, sqlite, exact, stats }
    const rate = (ms: number) => Math.round((total(collections) * 1_000) / ms)
    const rows: BenchRow[] = [
      {
        what: `indexing ${name}, ${PUTS_AT_ONCE} puts at once`,
        figure: `${rate(elasticsearchMs)} chunks/s, merges done ${(mergingMs / 1_000).toFixed(0)} s later; ${load()}`,
        target: '',
        beside: `SQLite ${rate(sqliteMs)} chunks/s, ${ratio(elasticsearchMs / sqliteMs)} as many`,
      },
    ]
    for (const { name: which, collectionIds } of queried) {
      const questions = evalChunks.questions(collectionIds, QUESTIONS)
      await search(sides, { ...HYBRID, questions: questions.slice(0, WARM_UP) })
      rows.push(await measureRecall(sides, `${name}, ${which}`, questions), await measureLatency(sides, `${name}, ${which}`, questions))
    }
    return [...rows, await measureMemory(sides, name, folder)]
  } finally {
    await dropAll()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes the collections with four concurrent puts. Returns the time in ms, without that of creating the chunks. */
async function fill(opened: ChunkIndex, evalChunks: EvalChunks, collections: readonly CollectionSize[]): Promise<number> {
  await using index = opened
  let ms = 0
  const write = async (puts: readonly Put[]) => {
    const start = performance.now()
    await Promise.all(puts.map(({ document, chunks }) => index.put(document, chunks)))
    ms += performance.now() - start
  }
  let waiting: Put[] = []
  for (const collection of collections) {
    await index.createCollection({ organizationId: 'org', collectionId: collection.collectionId, dimensions: evalChunks.dimensions })
    for (const put of evalChunks.documents(collection)) {
      waiting.push(put)
      if (waiting.length < PUTS_AT_ONCE) continue
      await write(waiting)
      waiting = []
    }
  }
  await write(waiting)
  return ms
}

/** Measures the recall of the vector search, with and without a filter. */
async function measureRecall(sides: Sides, what: string, questions: readonly Question[]): Promise<BenchRow> {
  const vectors = await search(sides, { ...VECTOR, questions })
  const filtered = await search(sides, { ...VECTOR, questions, filter: FILTER })
  const of = (side: 'elasticsearch' | 'sqlite') =>
    `${recall(vectors[side].topTens, vectors.exactTens)}, with a filter for a tenth ${recall(filtered[side].topTens, filtered.exactTens)}`
  return {
    what: `recall@10 of the vectors' leg on Elasticsearch, ${what}`,
    figure: of('elasticsearch'),
    target: `≥ ${RECALL_TARGET}`,
    beside: `its own exact search over the floats: 1; SQLite ${of('sqlite')}`,
  }
}

async function measureLatency(sides: Sides, what: string, questions: readonly Question[]): Promise<BenchRow> {
  const alone = await search(sides, { ...HYBRID, questions })
  const together = await search(sides, { ...HYBRID, questions, atOnce: AT_ONCE })
  const of = (side: 'elasticsearch' | 'sqlite') =>
    `${p50P95AndP99(alone[side].times)}; ${AT_ONCE} at once ${p50P95AndP99(together[side].times)}`
  const median = (side: 'elasticsearch' | 'sqlite') => quantile(alone[side].times, 0.5)
  return {
    what: `hybrid search on Elasticsearch, ${what}`,
    figure: `${of('elasticsearch')}; ${load()}`,
    target: '',
    beside: `SQLite ${of('sqlite')}; its p50 is ${ratio(median('sqlite') / median('elasticsearch'))} Elasticsearch's; exact search of the vectors p50 ${quantile(alone.exactTimes, 0.5).toFixed(1)} ms`,
  }
}

async function measureMemory({ elasticsearch, sqlite, stats }: Sides, what: string, folder: string): Promise<BenchRow> {
  const nothing: Searches = { ...VECTOR, questions: [] }
  const [client, embedded] = [await elasticsearch.request<Searched>(nothing), await sqlite.request<Searched>(nothing)]
  const { diskBytes, segments, searchedVectorBytes } = await stats.figures()
  const fileBytes = await measureSize(folder)
  const { least, most } = stats.heapUsed
  const mb = (bytes: number) => `${Math.round(bytes / BYTES_PER_MB)} MB`
  return {
    what: `memory and disk on Elasticsearch, ${what}`,
    figure: `JVM heap used ${mb(least)} to ${mb(most)}, small vectors and graph ${mb(searchedVectorBytes)} of page cache, searching process ${mb(client.rssBytes)}; ${mb(diskBytes)} on disk in ${segments} segments`,
    target: '',
    beside: `SQLite: searching process ${mb(embedded.rssBytes)}; ${mb(fileBytes)} on disk, ${ratio(fileBytes / diskBytes)} as much`,
  }
}

interface SearchOutcome {
  readonly elasticsearch: Searched
  readonly sqlite: Searched
  readonly exactTens: readonly (readonly string[])[]
  readonly exactTimes: readonly number[]
}

/** Runs the same searches on all indexes, and on the exact search one by one. */
async function search({ elasticsearch, sqlite, exact, stats }: Sides, searches: Searches): Promise<SearchOutcome> {
  const rounds: { readonly elasticsearch: Searched; readonly sqlite: Searched }[] = []
  const exactTens: (readonly string[])[] = []
  const exactTimes: number[] = []
  for (let from = 0; from < searches.questions.length; from += PER_ROUND) {
    const round = { ...searches, questions: searches.questions.slice(from, from + PER_ROUND) }
    rounds.push({ elasticsearch: await elasticsearch.request<Searched>(round), sqlite: await sqlite.request<Searched>(round) })
    for (const { collectionId, vector } of round.questions) {
      const start = performance.now()
      exactTens.push(await exact.nearest(collectionId, vector, searches.filter, 10))
      exactTimes.push(performance.now() - start)
    }
    await stats.pollHeap()
  }
  const joined = (side: 'elasticsearch' | 'sqlite'): Searched => ({
    times: rounds.flatMap((round) => round[side].times),
    cpuMs: rounds.reduce((sum, round) => sum + round[side].cpuMs, 0),
    topTens: rounds.flatMap((round) => round[side].topTens),
    rssBytes: rounds.at(-1)![side].rssBytes,
  })
  return { elasticsearch: joined('elasticsearch'), sqlite: joined('sqlite'), exactTens, exactTimes }
}

/** Returns the share of the exact search's hits that were found. A filter may leave a small collection without hits. */
function recall(found: readonly (readonly string[])[], exact: readonly (readonly string[])[]): string {
  if (exact.flat().length === 0) return 'nothing to find'
  const shared = exact.reduce((sum, ids, i) => sum + ids.filter((id) => found[i]!.includes(id)).length, 0)
  return (shared / exact.flat().length).toFixed(3)
}

async function measureSize(folder: string): Promise<number> {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size)
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

function total(collections: readonly CollectionSize[]): number {
  return collections.reduce((sum, { chunks }) => sum + chunks, 0)
}

function ratio(value: number): string {
  return `${value.toFixed(2)} times`
}

/** Returns the machine's load, which affects all times. */
function load(): string {
  return `load ${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores`
}
