import { afterAll } from 'vitest'
import { ELASTICSEARCH, testIndices } from '../support/elasticsearch.ts'
import { onEngine } from '../support/engine-url.ts'
import { startEmbedded } from '../support/service.ts'
import { endToEnd } from './suite.ts'

await onEngine(ELASTICSEARCH, 'end to end, one process on Elasticsearch', (url) => {
  const { newPrefix, dropAll } = testIndices(url)
  afterAll(dropAll)

  endToEnd('one process on Elasticsearch', (options) => {
    const index = { KIS_ELASTICSEARCH_URL: url, KIS_ELASTICSEARCH_PREFIX: newPrefix(), KIS_ELASTICSEARCH_REPLICAS: '0' }
    return startEmbedded({ ...options, env: { ...options.env, ...index } })
  })
})
