import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FileLock } from '../../subgraphs/common/adapters/sqlite/database.ts'
import { readPaths } from '../settings/variables.ts'

/** Only the loss of a log may be accepted. */
const LOG = /^[a-z]+\.sqlite-wal$/

/**
 * Lets the next start continue without a missing log of changes. Changes that were only in the log are lost. The
 * service must be stopped.
 * @throws {Error} no such log is missing, the service runs, or the storage fails
 */
export function acceptLoss(name: string, env: NodeJS.ProcessEnv, say: (line: string) => void): void {
  if (!LOG.test(name))
    throw new Error(`kis accept-loss takes the name of a write-ahead log, such as billing.sqlite-wal, not ${JSON.stringify(name)}.`)
  const file = join(readPaths(env).KIS_DATA_DIR, name.slice(0, -'-wal'.length))
  if (!existsSync(file)) throw new Error(`${file} does not exist. KIS_DATA_DIR names the data folder.`)
  using lock = new FileLock(file)
  if (!lock.missingLog) throw new Error(`${name} is not missing, so nothing was done.`)
  lock.acceptLoss()
  say(`${file} will be used without ${name} from the next start on. Run \`kis verify\` after that start: it reports inconsistencies.`)
}
