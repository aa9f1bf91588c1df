import { Client } from '@elastic/elasticsearch'
import { afterAll, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { createChunk, createDocument, OTHER, openCollection } from '../support/data/chunks.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'

await onEngine(ELASTICSEARCH, 'First collection with vectors of other dimensions', (url) => {
  const { newPrefix, dropAll } = testIndices(url)
  afterAll(dropAll)

  it('fails no other search while an index of new dimensions cannot be searched yet', async () => {
    const prefix = newPrefix()
    const client = new Client({ node: url })
    const open = () => openElasticsearchChunkIndex({ url, prefix, size: { shards: 1, replicas: 0 }, log: silentLog })
    await using collection = await openCollection(open, 10)
    const { index } = collection
    const { signal } = new AbortController()
    const chunk = createChunk('letters of the sultan', 0)
    await index.put(createDocument('doc_1'), [chunk])
    // No node has this attribute, so a shard never starts.
    const settings = { 'index.routing.allocation.require.place': 'nowhere' }
    await client.indices.putIndexTemplate({ name: prefix, index_patterns: [`${prefix}-chunks-*`], template: { settings } })
    try {
      const other = { organizationId: 'org_b', collectionId: OTHER, dimensions: 8 }
      const created = index.createCollection(other).then(
        () => 'created',
        ({ code }) => code,
      )
      for (let isOver = false; !isOver; ) {
        isOver = await Promise.race([created.then(() => true), new Promise<boolean>((resolve) => setTimeout(resolve, 200, false))])
        expect(await collection.searchText('sultan')).toHaveLength(1)
        expect(await index.get(createDocument('doc_1').collectionId, [chunk.chunkId])).toHaveLength(1)
        await index.ping(signal)
      }
      expect(await created).toBe('service_unavailable')
      await client.indices.deleteIndexTemplate({ name: prefix })
      await client.indices.putSettings({ index: `${prefix}-chunks-8-1`, settings: { 'index.routing.allocation.require.place': null } })
      await index.createCollection(other)
      expect(await index.hasCollection(OTHER)).toBe(true)
      await index.deleteDocument(createDocument('doc_1').collectionId, 'doc_1')
      expect(await collection.searchText('sultan')).toEqual([])
    } finally {
      await client.indices.deleteIndexTemplate({ name: prefix }, { ignore: [404] })
      await client.close()
    }
  })
})
