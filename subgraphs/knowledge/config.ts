import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'

/** The settings of the knowledge subgraph. */
export interface KnowledgeConfig {
  /** Folder of the embedded stores. */
  readonly dataDirectory: string
  /**
   * First delay of the retry backoff, in milliseconds. After the n-th failure a job waits at most 2^n times this delay.
   * Default: 1,000.
   */
  readonly retryBackoffMs: number
  /** `host:port` entries from which web documents may always be fetched. */
  readonly egressAllowed: ReadonlySet<string>
  /** Documents of an organization that start per round of the fair queue, by plan. 1 for other plans. */
  readonly ingestionWeights: ReadonlyMap<string, number>
  /** The MongoDB database with documents and bytes. Null: both are files in the data folder. */
  readonly mongodb: MongoDatabase | null
  /** The Elasticsearch cluster with the chunk index. Null: the index is a file in the data folder. */
  readonly elasticsearch: ElasticsearchConfig | null
}

/** The connection to Elasticsearch, and the size of new indices. */
export interface ElasticsearchConfig {
  /**
   * Format of `KIS_ELASTICSEARCH_URL`: one or several addresses, which may contain `user:password@`. Never write it to
   * a log or an error.
   */
  readonly url: string
  readonly apiKey: string | undefined
  readonly prefix: string | undefined
  /** The shards and replicas of newly created indices. */
  readonly size: { readonly shards: number; readonly replicas: number }
}

export const knowledgeFiles = (dataDirectory: string) => ({
  documents: join(dataDirectory, 'knowledge.sqlite'),
  blobs: join(dataDirectory, 'blobs.sqlite'),
  index: join(dataDirectory, 'index.sqlite'),
})
