import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { ConfigError } from '../../subgraphs/common/process/config-error.ts'
import type { ElasticsearchConfig } from '../../subgraphs/knowledge/config.ts'
import { elasticsearchSettings, toDatabase } from './config.ts'
import { trackReads } from './environment.ts'
import { VARIABLES } from './variables.ts'

/** Where an installation has its data. */
export interface StorePlaces {
  readonly dataDirectory: string
  /** Null: documents and bytes are in the data folder. */
  readonly mongodb: Readonly<Record<'billing' | 'inference' | 'knowledge', MongoDatabase>> | null
  /** Null: the index is in the data folder. */
  readonly elasticsearch: ElasticsearchConfig | null
}

/** The secret that the environment gives. */
export interface GivenSecret {
  readonly secret: Uint8Array
  /** Another one is set beside it, so that the data may depend on both. */
  readonly isRotating: boolean
}

/**
 * Reads where the data is, and the secret, as the roles read them. Makes nothing, unlike `readConfig`.
 * @throws {ConfigError} a variable is wrong; it lists every problem
 */
export function readPlacesOfStores(environment: NodeJS.ProcessEnv): {
  readonly places: StorePlaces
  /** Null: it is in the data folder. */
  readonly given: GivenSecret | null
  readonly logLevel: string
} {
  const { env, problems: ofFiles } = trackReads(environment)
  const { data: values, error } = VARIABLES.safeParse(env)
  const problems = (error?.issues ?? []).map(({ path, message }) => `${String(path[0])} ${message}`)
  problems.push(...ofFiles())
  if (!values || problems.length > 0) throw new ConfigError([...new Set(problems)])
  const { KIS_DATA_DIR: dataDirectory, KIS_SECRET: secret, KIS_SECRET_NEXT: next, KIS_SECRET_PREVIOUS: previous } = values
  const [billing, inference, knowledge] = ['billing', 'inference', 'knowledge'].map((subgraph) => toDatabase(values, subgraph))
  const isRotating = [next, previous].some((other) => other !== undefined && other !== secret)
  return {
    places: {
      dataDirectory,
      mongodb: billing && inference && knowledge ? { billing, inference, knowledge } : null,
      elasticsearch: elasticsearchSettings(values),
    },
    given: secret === undefined ? null : { secret: parseSecret(secret), isRotating },
    logLevel: values.KIS_LOG_LEVEL,
  }
}
