import { Client } from '@elastic/elasticsearch'
import { afterAll, expect, it } from 'vitest'
import { seeded } from '../../bench/support/words.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import type { ChunkIndex, IndexedChunk } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'

const DIMENSIONS = 96
/** Passages that every collection has, as those of a handbook that everyone uploads. */
const SHARED = 200
const SHARING = 25
/** Further passages of the collection that is searched, each this far from a shared one. */
const OWN = 5_000
const FROM_SHARED = 0.3
const PER_PUT = 200
const QUESTIONS = 20
/** 10,200 small chunks, and a graph over all of them. */
const TIMEOUT_MS = 120_000

await onEngine(ELASTICSEARCH, 'Copies of a document in Elasticsearch', (url) => {
  const { newPrefix, dropAll } = testIndices(url)
  afterAll(dropAll)

  it(
    'finds the nearest chunks of a collection although many others share some of them',
    async () => {
      const prefix = newPrefix()
      await using index = await openElasticsearchChunkIndex({ url, prefix, size: { shards: 1, replicas: 0 }, log: silentLog })
      const random = seeded(1)
      const shared = Array.from({ length: SHARED }, () => unitVector(random))
      const near = () => {
        const off = unitVector(random)
        return ofLengthOne(shared[Math.floor(random() * SHARED)]!.map((x, i) => x + FROM_SHARED * off[i]!))
      }
      const all = [...shared, ...Array.from({ length: OWN }, near)]
      for (let n = 0; n < SHARING; n++) await fill(index, `sharing-${n}`, shared)
      await fill(index, 'searched', all)
      // One segment, as there is after months: its graph has a place for every copy.
      const client = new Client({ node: url, requestTimeout: TIMEOUT_MS })
      await client.indices.forcemerge({ index: `${prefix}-chunks-*`, max_num_segments: 1 })
      await client.close()

      for (let n = 0; n < QUESTIONS; n++) {
        const vector = near()
        const query = { collectionId: 'searched', vector, words: [], grams: [], candidates: 100, filter: null }
        const candidates = await index.search(query, new AbortController().signal)
        expect(candidates.map(({ chunkId }) => chunkId)).toEqual(expect.arrayContaining([...nearestTen(all, vector)]))
      }
    },
    TIMEOUT_MS,
  )
})

async function fill(index: ChunkIndex, collectionId: string, vectors: readonly Float32Array[]): Promise<void> {
  await index.createCollection({ organizationId: 'org', collectionId, dimensions: DIMENSIONS })
  for (let from = 0; from < vectors.length; from += PER_PUT) {
    const document = { organizationId: 'org', collectionId, documentId: `doc-${from}`, generation: 'g', attributes: {} }
    const chunks = vectors.slice(from, from + PER_PUT).map((vector, i) => createChunk(from + i, vector))
    await index.put(document, chunks)
  }
}

function nearestTen(vectors: readonly Float32Array[], query: Float32Array): readonly string[] {
  const cosines = vectors.map((vector) => vector.reduce((sum, x, i) => sum + x * query[i]!, 0))
  const best = [...vectors.keys()].sort((a, b) => cosines[b]! - cosines[a]!)
  return best.slice(0, 10).map((ordinal) => `chunk-${ordinal}`)
}

function unitVector(random: () => number): Float32Array {
  return ofLengthOne(Float32Array.from({ length: DIMENSIONS }, () => random() + random() + random() - 1.5))
}

function ofLengthOne(raw: Float32Array): Float32Array {
  const length = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0))
  return raw.map((x) => x / length)
}

function createChunk(ordinal: number, vector: Float32Array): IndexedChunk {
  const position = { ordinal, headingPath: [], context: '', pageStart: null, pageEnd: null, charStart: 0, charEnd: 4 }
  return { ...position, chunkId: `chunk-${ordinal}`, text: 'text', language: null, vector, words: ['text'], grams: ['tex'] }
}
