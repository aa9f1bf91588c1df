import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { DataFolder } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { explainForeign, type Installation } from '../../subgraphs/common/identity/installation.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { isIndexEmpty } from '../../subgraphs/knowledge/stored.ts'
import { dataFiles } from '../backup/data-files.ts'
import { refuseHalfRestored } from '../backup/restoring.ts'
import { syncFolder } from '../backup/tar-writer.ts'
import type { Servers } from '../settings/servers.ts'
import { copyingMark } from './copying.ts'
import { openFolder, openServers, type Stores } from './stores.ts'

/** What a file system may have in its root. */
const NOBODYS = ['lost+found']

/** The stores that a copy fills. No service starts on them until `finish`. */
export interface Target extends Stores {
  /** An earlier copy into them has not ended. */
  readonly isRepeated: boolean
  /** Lets the service start on them. Call it once they are closed. */
  finish(): Promise<void>
}

export interface TargetOptions {
  /** Whose data they get. */
  readonly installation: Installation
  readonly log: Log
}

/**
 * Opens an empty data folder, or one of a copy that has not ended.
 * @throws {Error} it has other data
 */
export async function openTargetFolder(dataDirectory: string, { installation, log }: TargetOptions): Promise<Target> {
  refuseHalfRestored(dataDirectory)
  const isRepeated = existsSync(copyingMark(dataDirectory))
  if (!isRepeated) markFolder(dataDirectory)
  const stores = await openFolder(dataDirectory, { installation, isIndexLost: false, log })
  return {
    ...stores,
    isRepeated,
    async finish() {
      // As a start does, so that a file that is missing later is missed.
      const fingerprints = () => ({ current: installation.secretFingerprint, next: null, previous: null })
      const own = { fingerprints, ask: () => null, newId: () => installation.id }
      new DataFolder({ files: Object.values(dataFiles(dataDirectory)), ...own }).noteSiblings()
      rmSync(copyingMark(dataDirectory))
      syncFolder(dataDirectory)
    },
  }
}

function markFolder(dataDirectory: string): void {
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  const other = names.find((name) => !NOBODYS.includes(name))
  if (other !== undefined)
    throw new Error(
      `${dataDirectory} is not empty: it has ${other}. A copy needs an empty data folder, or one of a copy that has not ended.`,
    )
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
  writeFileSync(copyingMark(dataDirectory), '', { mode: 0o600, flush: true })
  syncFolder(dataDirectory)
}

/**
 * Opens empty databases and an empty index, or those of a copy that has not ended. The database of billing says which:
 * the other roles ask billing whose their stores are, so that nothing starts before it is released.
 * @throws {Error} they have other data
 * @throws {Unfit} a server cannot serve
 */
export async function openTargetServers(servers: Servers, { installation, log }: TargetOptions): Promise<Target> {
  const { beginCopyInto, endCopyInto, lookAtDatabase } = await import('../../subgraphs/common/adapters/mongodb/claimed/copy-mark.ts')
  const { mongodb, elasticsearch } = servers
  const { isCopying: isRepeated } = await lookAtDatabase(mongodb.billing, [])
  for (const database of Object.values(mongodb)) {
    const name = `The database ${database.database} in MongoDB`
    const found = await lookAtDatabase(database, [])
    const problem = found.installation && explainForeign(name, found.installation, installation)
    if (problem) throw new Error(problem)
    if (isRepeated) continue
    if (found.installation && !found.isEmpty)
      throw new Error(`${name} has the data of this installation already: a copy has ended there, or the service has used it since.`)
    if (found.installation || !found.isEmpty)
      throw new Error(`${name} is not empty. A copy needs databases of its own: change the name in KIS_MONGODB_URL.`)
  }
  if (!isRepeated && !(await isIndexEmpty(elasticsearch, log)))
    throw new Error(
      'Elasticsearch has passages under this prefix already. Set KIS_ELASTICSEARCH_PREFIX to another, or delete these indices.',
    )
  await beginCopyInto(mongodb.billing, installation)
  const stores = await openServers(servers, { installation, log, isSource: false })
  return {
    ...stores,
    isRepeated,
    async finish() {
      for (const subgraph of ['knowledge', 'inference', 'billing'] as const) await endCopyInto(mongodb[subgraph])
    },
  }
}
