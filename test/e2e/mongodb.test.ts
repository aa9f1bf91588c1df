import { onEngine } from '../support/engine-url.ts'
import { dropDatabases, newDatabaseName, withDatabase } from '../support/mongodb.ts'
import { type ServiceOptions, startFiveProcesses } from '../support/service.ts'
import { endToEnd } from './suite.ts'

const NAME = 'five processes on MongoDB'

await onEngine('KIS_TEST_MONGODB_URL', `end to end, ${NAME}`, (url) => {
  endToEnd(NAME, async (options: ServiceOptions) => {
    const database = newDatabaseName()
    const service = await startFiveProcesses({ ...options, env: { ...options.env, KIS_MONGODB_URL: withDatabase(url, database) } })
    return {
      ...service,
      async close() {
        await service.close()
        await dropDatabases(url, `${database}_billing`, `${database}_knowledge`)
      },
    }
  })
})
