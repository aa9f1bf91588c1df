import { Client } from '@elastic/elasticsearch'
import { afterAll, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import type { IndexedChunk } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { eventually } from '../support/eventually.ts'

const createChunk = (documentId: string, ordinal: number): IndexedChunk => ({
  ...{ chunkId: `chunk_${documentId}_${ordinal}`, ordinal, text: `The harbour, part ${ordinal}.`, headingPath: [], context: '' },
  ...{ pageStart: null, pageEnd: null, charStart: 0, charEnd: 20, language: 'en', words: ['harbour'], grams: ['har'] },
  vector: Float32Array.from([1, 0, 0, 0]),
})

/** The test engine takes this; a packaged server refuses it, and its leases move on every 30 s. */
const LEASES_MOVE_ON = { 'index.soft_deletes.retention_lease.sync_interval': '500ms' }

await onEngine(ELASTICSEARCH, 'Deletion in Elasticsearch', (url) => {
  const { newPrefix, dropAll } = testIndices(url)
  afterAll(dropAll)

  it('removes a deleted document from its segment, however small a part it was, and then the next one', async () => {
    const prefix = newPrefix()
    const client = new Client({ node: url })
    const template = { index_patterns: [`${prefix}-*`], template: { settings: LEASES_MOVE_ON } }
    const { statusCode } = await client.indices.putIndexTemplate({ name: prefix, ...template }, { ignore: [400], meta: true })
    expect([200, 400]).toContain(statusCode)
    const index = await openElasticsearchChunkIndex({ url, prefix, size: { shards: 1, replicas: 0 }, log: silentLog })
    const deleted = async () => (await client.indices.stats({ index: `${prefix}-chunks`, metric: 'docs' }))._all.primaries!.docs!.deleted
    const put = (documentId: string, count: number) =>
      index.put(
        { organizationId: 'org_1', collectionId: 'col_1', documentId, generation: 'g1', attributes: {} },
        Array.from({ length: count }, (_, i) => createChunk(documentId, i)),
      )
    try {
      await index.createCollection({ organizationId: 'org_1', collectionId: 'col_1', dimensions: 4 })
      await put('stays', 250)
      for (const documentId of ['first', 'second']) await put(documentId, 3)
      await client.indices.forcemerge({ index: `${prefix}-chunks`, max_num_segments: 1 })
      const { signal } = new AbortController()
      for (const documentId of ['first', 'second']) {
        await index.deleteDocument('col_1', documentId)
        expect(await deleted()).toBeGreaterThan(0)
        // The leases that keep it have to move on first.
        await eventually(async () => {
          await index.expunge(signal)
          return (await deleted()) === 0
        }, 90_000)
      }
      expect(await index.ordinals('col_1', 'stays', 'g1')).toHaveLength(250)
    } finally {
      await index[Symbol.asyncDispose]()
      await client.indices.deleteIndexTemplate({ name: prefix }, { ignore: [404] })
      await client.close()
    }
  }, 240_000)
})
