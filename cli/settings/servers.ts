import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import { ConfigError } from '../../subgraphs/common/errors.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import type { ElasticsearchConfig } from '../../subgraphs/knowledge/config.ts'
import { elasticsearchSettings, toDatabase } from './config.ts'
import { trackReads } from './environment.ts'
import { VARIABLES } from './variables.ts'

/** Where an installation has its data. */
export interface StoreLocations {
  readonly dataDirectory: string
  /** Null: documents and bytes are in the data folder. */
  readonly mongodb: Readonly<Record<'billing' | 'inference' | 'knowledge', MongoDatabase>> | null
  /** Null: the index is in the data folder. */
  readonly elasticsearch: ElasticsearchConfig | null
}

/**
 * Reads where the data is, and the secret, as the roles read them. Makes nothing, unlike `readConfig`.
 * @throws {ConfigError} a variable is wrong; it lists every problem
 */
export function readStoreLocations(environment: NodeJS.ProcessEnv): {
  readonly locations: StoreLocations
  /** `KIS_SECRET`; null: the secret is in the data folder. */
  readonly environmentSecret: Uint8Array | null
  /** `KIS_NEW_SECRET`. */
  readonly next: Uint8Array | null
  readonly logLevel: string
} {
  const { env, problems: ofFiles } = trackReads(environment)
  const { data: values, error } = VARIABLES.safeParse(env)
  const problems = (error?.issues ?? []).map(({ path, message }) => `${String(path[0])} ${message}`)
  problems.push(...ofFiles())
  if (!values || problems.length > 0) throw new ConfigError([...new Set(problems)])
  const { KIS_DATA_DIR: dataDirectory, KIS_SECRET: secret, KIS_NEW_SECRET: next } = values
  const [billing, inference, knowledge] = ['billing', 'inference', 'knowledge'].map((subgraph) => toDatabase(values, subgraph))
  return {
    locations: {
      dataDirectory,
      mongodb: billing && inference && knowledge ? { billing, inference, knowledge } : null,
      elasticsearch: elasticsearchSettings(values),
    },
    environmentSecret: secret === undefined ? null : parseSecret(secret),
    next: next === undefined ? null : parseSecret(next, 'KIS_NEW_SECRET'),
    logLevel: values.KIS_LOG_LEVEL,
  }
}
