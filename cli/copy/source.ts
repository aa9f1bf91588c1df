import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { DataFolder } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { explainForeign, fingerprintSecret, type Installation } from '../../subgraphs/common/identity/installation.ts'
import type { DocumentStore, StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { countProcesses } from '../../subgraphs/inference/stored.ts'
import { dataFiles } from '../backup/data-files.ts'
import { refuseHalfRestored } from '../backup/restoring.ts'
import type { Servers } from '../settings/servers.ts'
import { refuseHalfCopied } from './copying.ts'
import { openFolder, openServers, type Stores, SUBGRAPHS } from './stores.ts'

/** A process that was killed looks alive for 15 s. */
const GONE_AFTER_MS = 20_000
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
    secretFingerprint: () => fingerprintSecret(secret),
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
 * Opens the stores on servers. Processes of the service cannot be kept off them, so what shows that one lives is looked
 * at before and after.
 * @throws {Error} a process lives, the databases do not belong together, or were made with another secret
 * @throws {Unfit} a server cannot serve
 */
export async function openSourceServers(servers: Servers, { secret, log, say }: SourceOptions): Promise<Source> {
  const { lookAtDatabase } = await import('../../subgraphs/common/adapters/mongodb/copy-mark.ts')
  const { installation } = await lookAtDatabase(servers.mongodb.billing)
  if (!installation)
    throw new Error(
      `The database ${servers.mongodb.billing.database} in MongoDB has no data of the service. KIS_MONGODB_URL names the databases.`,
    )
  const problem = explainForeign(`The database ${servers.mongodb.billing.database} in MongoDB`, installation, {
    ...installation,
    secretFingerprint: fingerprintSecret(secret),
  })
  if (problem) throw new Error(problem)
  for (const { database, url } of Object.values(servers.mongodb)) {
    const found = await lookAtDatabase({ database, url })
    if (!found.installation)
      throw new Error(`The database ${database} in MongoDB has no data of the service, though those of other subgraphs have.`)
  }
  const stores = await openServers(servers, { installation, log, isCopy: false })
  await using closing = new AsyncDisposableStack()
  closing.use(stores)
  await refuseAlive(stores.documents.inference, say)
  const seen = await startsIn(stores)
  const opened = closing.move()
  return {
    ...stores,
    installation,
    async refuseUsed() {
      // First, because the next look writes there.
      if (JSON.stringify(await startsIn(stores)) !== JSON.stringify(seen)) throw new Error(IN_USE)
      await refuseAlive(stores.documents.inference, say)
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

const IN_USE = 'A process of the service uses the source: stop all of them, and run the same command again.'

/** @throws {Error} a process of inference announces itself */
async function refuseAlive(inference: DocumentStore, say: (line: string) => void): Promise<void> {
  const deadline = performance.now() + GONE_AFTER_MS
  for (let told = false; ; told = true) {
    // Processes announce themselves with the time of the store.
    const now = await inference.ping(AbortSignal.timeout(PING_TIMEOUT_MS))
    const living = await countProcesses(inference, now)
    if (living === 0) return
    if (performance.now() > deadline) throw new Error(IN_USE)
    if (!told) say(`${living} processes of the service were alive a moment ago; waiting until it is certain that they are gone`)
    await sleep(LOOK_MS)
  }
}

interface LastStart extends StoredDocument {
  readonly at: Date
}

/** Every start and every check of a store on MongoDB writes the time into this document. Billing checks every 30 s. */
function startsOf(store: DocumentStore) {
  return store.collection<LastStart>({ name: 'starts', indexes: [] })
}

async function startsIn({ documents }: Stores): Promise<readonly (number | null)[]> {
  return Promise.all(
    SUBGRAPHS.map(async (subgraph) => (await startsOf(documents[subgraph]).findOne({ _id: 'last' }))?.at.getTime() ?? null),
  )
}
