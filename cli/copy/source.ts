import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DataFolder } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { explainForeign, fingerprintSecret, type Installation } from '../../subgraphs/common/identity/installation.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { readReplicas } from '../../subgraphs/inference/stored.ts'
import { dataFiles } from '../backup/data-files.ts'
import { refuseHalfRestored } from '../backup/restoring.ts'
import type { Servers } from '../settings/servers.ts'
import { refuseHalfCopied } from './copying.ts'
import { kindsOf, openFolder, openServers, type Stores, SUBGRAPHS } from './stores.ts'

/** A process of any role says every 30 s that it is there. */
const GONE_AFTER_MS = 40_000
const LOOK_MS = 1_000
const PING_TIMEOUT_MS = 10_000

/** The stores that are copied. Nobody writes to them. */
export interface Source extends Stores {
  readonly installation: Installation
  /** @throws {Error} a process of the service has used the stores since they were opened */
  refuseUsed(): Promise<void>
}

export interface SourceOptions {
  readonly secret: Uint8Array
  readonly log: Log
  readonly say: (line: string) => void
}

/**
 * Opens a data folder, which then no service can open.
 * @throws {Error} a service runs on it, it is not whole, or it was made with another secret
 */
export async function openSourceFolder(dataDirectory: string, { secret, log }: SourceOptions): Promise<Source> {
  refuseHalfRestored(dataDirectory)
  refuseHalfCopied(dataDirectory)
  const files = Object.values(dataFiles(dataDirectory))
  const missing = files.find(({ path, isDerived }) => !isDerived && !existsSync(path))
  if (missing)
    throw new Error(
      `${missing.path} is missing. The source is one folder with the files of all subgraphs; put them together if roles have folders of their own.`,
    )
  const folder = new DataFolder({
    files,
    fingerprints: () => ({ current: fingerprintSecret(secret), next: null, previous: null }),
    ask: () => null,
    newId: () => idSource(systemClock)('inst'),
  })
  try {
    const { installation, lost } = await folder.look()
    const stores = await openFolder(dataDirectory, { installation, isIndexLost: lost.length > 0, log })
    return { ...stores, installation, refuseUsed: async () => undefined }
  } catch (error) {
    if (error instanceof Error && error.message.includes('is in use:'))
      throw new Error(`${error.message} The service must be stopped while it is copied.`, { cause: error })
    throw error
  }
}

/**
 * Opens the stores on servers. Processes of the service cannot be kept off them, so what they say of themselves is
 * looked at before and after.
 * @throws {Error} a process lives, the databases do not belong together, or were made with another secret
 * @throws {Unfit} a server cannot serve
 */
export async function openSourceServers(servers: Servers, { secret, log, say }: SourceOptions): Promise<Source> {
  const { lookAtDatabase } = await import('../../subgraphs/common/adapters/mongodb/claimed/copy-mark.ts')
  let installation: Installation | undefined
  for (const subgraph of SUBGRAPHS) {
    const database = servers.mongodb[subgraph]
    const name = `The database ${database.database} in MongoDB`
    const found = await lookAtDatabase(database, kindsOf(subgraph))
    if (!found.installation) throw new Error(`${name} has no data of the service. KIS_MONGODB_URL names the databases.`)
    installation ??= { id: found.installation.id, secretFingerprint: fingerprintSecret(secret) }
    const problem = explainForeign(name, found.installation, installation)
    if (problem) throw new Error(problem)
    if (found.isCopying) throw new Error(`${name} is the target of a copy that has not ended.`)
    if (found.otherKinds.length > 0)
      throw new Error(
        `${name} has documents in another version than this program writes (${found.otherKinds.join(', ')}). Start the service with this version, wait until its log says that all are converted, then stop it.`,
      )
  }
  const stores = await openServers(servers, { installation: installation!, log, isSource: true })
  await using closing = new AsyncDisposableStack()
  closing.use(stores)
  await refuseAlive(stores, servers, say)
  const seen = await readAllSigns(stores, servers)
  const opened = closing.move()
  return {
    ...stores,
    installation: installation!,
    async refuseUsed() {
      const now = await readAllSigns(stores, servers)
      if (now.some((sign) => !seen.includes(sign))) throw new Error(IN_USE)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

const IN_USE = 'A process of the service uses the source: stop all of them, and run the same command again.'

/** @throws {Error} a process says again that it is there */
async function refuseAlive(stores: Stores, servers: Servers, say: (line: string) => void): Promise<void> {
  const seen = await readAllSigns(stores, servers)
  if (seen.length === 0) return
  say('Processes of the service were there a moment ago. Waiting for up to 40 s until it is certain that they are gone.')
  const deadline = performance.now() + GONE_AFTER_MS
  while (performance.now() < deadline) {
    await sleep(LOOK_MS)
    const now = await readAllSigns(stores, servers)
    if (now.some((sign) => !seen.includes(sign))) throw new Error(IN_USE)
    if (now.length === 0) return
  }
}

async function readAllSigns({ documents }: Stores, { mongodb }: Servers): Promise<readonly string[]> {
  const { readSigns } = await import('../../subgraphs/common/adapters/mongodb/claimed/copy-mark.ts')
  // Replicas announce themselves with the time of the store.
  const now = await documents.inference.ping(AbortSignal.timeout(PING_TIMEOUT_MS))
  const signs = await Promise.all([readReplicas(documents.inference, now), ...SUBGRAPHS.map((subgraph) => readSigns(mongodb[subgraph]))])
  return signs.flat()
}
