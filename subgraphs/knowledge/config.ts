import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'

export interface KnowledgeConfig {
  /** Folder of the embedded stores. */
  readonly dataDirectory: string
  /**
   * First step of the backoff of a failed job, in milliseconds: after the n-th failure it waits up to 2^n of it.
   * Default: 1,000.
   */
  readonly retryBackoffMs: number
  /** Entries `host:port` that documents from the web may always come from. */
  readonly egressAllowed: ReadonlySet<string>
  /** By plan: how many documents of an organization are begun in one turn. 1 for other plans. */
  readonly ingestionWeights: ReadonlyMap<string, number>
  /** The MongoDB database with documents and bytes; null: they are in files of the data folder. */
  readonly mongodb: MongoDatabase | null
  /** The Elasticsearch with the chunk index; null: it is in a file of the data folder. */
  readonly elasticsearch: ElasticsearchConfig | null
}

export interface ElasticsearchConfig {
  /** As `KIS_ELASTICSEARCH_URL`: one or several addresses, which may contain `user:password@`. It goes into no log and no error. */
  readonly url: string
  readonly apiKey: string | undefined
  readonly prefix: string | undefined
  /** For indices created from now on. */
  readonly size: { readonly shards: number; readonly replicas: number }
}

export const knowledgeFiles = (dataDirectory: string) => ({
  documents: join(dataDirectory, 'knowledge.sqlite'),
  blobs: join(dataDirectory, 'blobs.sqlite'),
  index: join(dataDirectory, 'index.sqlite'),
})
