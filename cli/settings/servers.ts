import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { ConfigError } from '../../subgraphs/common/process/config-error.ts'
import type { ElasticsearchConfig } from '../../subgraphs/knowledge/config.ts'
import { elasticsearchSettings, toDatabase } from './config.ts'
import { trackReads } from './environment.ts'
import { VARIABLES } from './variables.ts'

/** Where an installation on MongoDB and Elasticsearch has its data. */
export interface Servers {
  readonly mongodb: Readonly<Record<'billing' | 'inference' | 'knowledge', MongoDatabase>>
  readonly elasticsearch: ElasticsearchConfig
}

/**
 * Reads the servers and the secret as the roles read them.
 * @throws {ConfigError} a variable is wrong, or one that the servers need is missing; it lists every problem
 */
export function readServers(environment: NodeJS.ProcessEnv): {
  readonly servers: Servers
  readonly secret: Uint8Array
  readonly logLevel: string
} {
  const { env, problems: ofFiles } = trackReads(environment)
  const { data: values, error } = VARIABLES.safeParse(env)
  const problems = (error?.issues ?? []).map(({ path, message }) => `${String(path[0])} ${message}`)
  const missing = (name: string, what: string) => {
    if (!env[name]) problems.push(`${name} is missing: ${what}`)
  }
  missing(
    'KIS_SECRET',
    'the secret that the data was made with. For a data folder that keeps its own, set KIS_SECRET_FILE to its file `secret`',
  )
  missing('KIS_MONGODB_URL', 'the address of MongoDB, with the name of the databases')
  missing('KIS_ELASTICSEARCH_URL', 'the address of Elasticsearch')
  problems.push(...ofFiles())
  if (!values || problems.length > 0) throw new ConfigError([...new Set(problems)])
  return {
    servers: {
      mongodb: {
        billing: toDatabase(values, 'billing')!,
        inference: toDatabase(values, 'inference')!,
        knowledge: toDatabase(values, 'knowledge')!,
      },
      elasticsearch: elasticsearchSettings(values)!,
    },
    secret: parseSecret(env.KIS_SECRET!),
    logLevel: values.KIS_LOG_LEVEL,
  }
}
