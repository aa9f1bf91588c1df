import { afterAll } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { chunkIndexContract } from './chunk-index.ts'

await onEngine(ELASTICSEARCH, 'Elasticsearch as a chunk index', (url) => {
  const { newPrefix, dropAll } = testIndices(url)
  afterAll(dropAll)

  chunkIndexContract(
    'Elasticsearch',
    () => openElasticsearchChunkIndex({ url, prefix: newPrefix(), size: { shards: 1, replicas: 0 }, log: silentLog }),
    { atomicWrites: false },
  )
})
