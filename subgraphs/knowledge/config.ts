import { join } from 'node:path'
import type { MongoDatabase } from '../common/documents/mongodb-url.ts'

export interface KnowledgeConfig {
  /** Folder of the embedded stores. */
  readonly dataDirectory: string
  /** First step of the backoff of a job that failed: the n-th failure waits up to 2^n of it. Default 1,000. */
  readonly retryBackoffMs: number
  /** Where documents and file bytes are; null: in files of the data folder. */
  readonly mongodb: MongoDatabase | null
  /** Where the chunk index is; null: in a file of the data folder. */
  readonly elasticsearch: ElasticsearchConfig | null
}

export interface ElasticsearchConfig {
  /** May carry `user:password@`; it goes into no log and no error. */
  readonly url: string
  readonly apiKey: string | undefined
  readonly prefix: string | undefined
  /** Of each index that is made from now on. */
  readonly size: { readonly shards: number; readonly replicas: number }
}

export const knowledgeFiles = (dataDirectory: string) => ({
  documents: join(dataDirectory, 'knowledge.sqlite'),
  blobs: join(dataDirectory, 'blobs.sqlite'),
  index: join(dataDirectory, 'index.sqlite'),
})
