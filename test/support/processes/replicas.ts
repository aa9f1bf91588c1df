import { ELASTICSEARCH, testIndices } from '../engines/elasticsearch.ts'
import { onEngine } from '../engines/engine-url.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../engines/mongodb.ts'
import { type DistributedOptions, type DistributedService, startFiveProcesses } from './service.ts'

export interface Replicas extends DistributedService {
  /** The address of its MongoDB database. */
  readonly mongodbUrl: string
}

type StartReplicas = (options?: DistributedOptions) => Promise<Replicas>

/**
 * Declares suites of a service that can run several processes per role. It has its own MongoDB database and
 * Elasticsearch indices, and drops them at the end.
 */
export async function onBothEngines(name: string, declare: (start: StartReplicas) => void): Promise<void> {
  await onEngine('KIS_TEST_MONGODB_URL', name, (mongodb) =>
    onEngine(ELASTICSEARCH, name, (elasticsearch) => {
      declare(async (options = {}) => {
        const database = newDatabaseName()
        const indices = testIndices(elasticsearch)
        const engines = {
          KIS_MONGODB_URL: withDatabase(mongodb, database),
          KIS_ELASTICSEARCH_URL: elasticsearch,
          KIS_ELASTICSEARCH_PREFIX: indices.newPrefix(),
          KIS_ELASTICSEARCH_REPLICAS: '0',
        }
        const service = await startFiveProcesses({ ...options, env: { ...options.env, ...engines } })
        return {
          ...service,
          mongodbUrl: engines.KIS_MONGODB_URL,
          async close() {
            await service.close()
            await indices.dropAll()
            await dropServiceDatabases(mongodb, database)
          },
        }
      })
    }),
  )
}
