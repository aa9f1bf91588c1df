import { join } from 'node:path'
import { type MongoDatabase, mongoDatabaseOf } from '../common/documents/mongodb-url.ts'
import { ConfigError } from '../common/process/config-error.ts'

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

/** What Elasticsearch takes in the name of an index, short enough for what is put after it. */
const PREFIX = /^[a-z0-9][a-z0-9_-]{0,99}$/
/** Elasticsearch's own bounds for a cluster of usual size. */
const MAX_SHARDS = 1_024
const MAX_REPLICAS = 20

/** Also the user and the password must be readable: a `%` in them is written `%25`. */
function isHttpAddress(url: string): boolean {
  if (!URL.canParse(url) || !/^https?:/.test(url)) return false
  const { username, password } = new URL(url)
  return !/%(?![0-9a-f]{2})/i.test(username + password)
}

/** @throws {ConfigError} with every problem at once. */
export function readKnowledgeConfig(env: NodeJS.ProcessEnv): KnowledgeConfig {
  const problems: string[] = []
  const whole = (name: string, value: string | undefined, byDefault: number, min: number, max: number) => {
    const number = Number(value ?? byDefault)
    if (!(Number.isSafeInteger(number) && number >= min && number <= max))
      problems.push(`${name} must be a whole number from ${min} to ${max}`)
    return number
  }
  const retryBackoffMs = Number(env.KIS_RETRY_BACKOFF_MS ?? 1_000)
  if (!Number.isSafeInteger(retryBackoffMs) || retryBackoffMs < 1)
    problems.push('KIS_RETRY_BACKOFF_MS must be a whole number of milliseconds from 1')
  const { KIS_ELASTICSEARCH_URL: url, KIS_ELASTICSEARCH_API_KEY: apiKey } = env
  // The value is not repeated: it may hold a password.
  if (url !== undefined && !isHttpAddress(url)) problems.push('KIS_ELASTICSEARCH_URL must be an http(s) address')
  const prefix = env.KIS_ELASTICSEARCH_PREFIX
  if (prefix !== undefined && !PREFIX.test(prefix))
    problems.push('KIS_ELASTICSEARCH_PREFIX must be lower-case letters, digits, - and _, at most 100')
  const size = {
    shards: whole('KIS_ELASTICSEARCH_SHARDS', env.KIS_ELASTICSEARCH_SHARDS, 1, 1, MAX_SHARDS),
    replicas: whole('KIS_ELASTICSEARCH_REPLICAS', env.KIS_ELASTICSEARCH_REPLICAS, 1, 0, MAX_REPLICAS),
  }
  const mongodb = mongoDatabaseOf(env.KIS_MONGODB_URL, 'knowledge', problems)
  if (problems.length) throw new ConfigError(problems)
  const elasticsearch = url === undefined ? null : { url, apiKey, prefix, size }
  return { dataDirectory: env.KIS_DATA_DIR ?? './data', retryBackoffMs, mongodb, elasticsearch }
}

export const knowledgeFiles = (dataDirectory: string) => ({
  documents: join(dataDirectory, 'knowledge.sqlite'),
  blobs: join(dataDirectory, 'blobs.sqlite'),
  index: join(dataDirectory, 'index.sqlite'),
})
