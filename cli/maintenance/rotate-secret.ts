import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { BILLING_KINDS } from '../../subgraphs/billing/migrations.ts'
import { endRotation, openAccountCollections, requireRotatable, resealEndpoints, startRotation } from '../../subgraphs/billing/portable.ts'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { newSecretText, readSecretFile, secretFilesOf } from '../../subgraphs/common/identity/secret-file.ts'
import { type Purpose, sealedBy } from '../../subgraphs/common/identity/secrets.ts'
import type { DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { INFERENCE_KINDS } from '../../subgraphs/inference/migrations.ts'
import { openAgentCollections, resealAgents } from '../../subgraphs/inference/portable.ts'
import { syncFolder } from '../archive/archive-writer.ts'
import { dataFiles } from '../settings/data-files.ts'
import { readStoreLocations, type StoreLocations } from '../settings/servers.ts'

/** Permission bits that the written file must not have. */
const GROUP_AND_OTHERS = 0o077
const KINDS = { billing: BILLING_KINDS, inference: INFERENCE_KINDS } as const

/**
 * Makes all data depend on a new secret. If it is killed, the service refuses to start, and the next call continues.
 * @throws {Error} the service runs, a secret is missing or is not that of the data, or the storage fails
 */
export async function rotateSecret(environment: NodeJS.ProcessEnv, say: (line: string) => void): Promise<void> {
  const { locations, environmentSecret, next: environmentNext } = readStoreLocations(environment)
  if (environmentSecret && !environmentNext)
    throw new Error('The secret comes from KIS_SECRET: set KIS_NEW_SECRET to the new one. `openssl rand -hex 32` generates one.')
  if (!environmentSecret && environmentNext)
    throw new Error('KIS_NEW_SECRET needs KIS_SECRET. For the data folder, this command generates the secret.')
  const secretFiles = secretFilesOf(locations.dataDirectory)
  process.umask(GROUP_AND_OTHERS)
  {
    await using stack = new AsyncDisposableStack()
    const open = async (subgraph: keyof typeof KINDS) => {
      const store = await openStore(locations, subgraph)
      return store && stack.use(store)
    }
    const [billing, inference] = [await open('billing'), await open('inference')]
    if (!billing && !inference)
      throw new Error(`${locations.dataDirectory} has no data of the service. KIS_DATA_DIR names the data folder.`)
    await requireStopped(locations)
    const accounts = billing && openAccountCollections(billing)
    const secret = environmentSecret ?? readSecretFile(secretFiles.secret, locations.dataDirectory)
    // Checked before a file is written that keeps the service from starting.
    if (accounts && !environmentSecret && !existsSync(secretFiles.next)) await requireRotatable(accounts, [secret])
    const next = environmentNext ?? loadOrCreateNext(secretFiles.next)
    const both = (purpose: Purpose) => [sealedBy(secret, purpose), sealedBy(next, purpose)] as const
    const isBegun = accounts !== null && (await startRotation(accounts, secret, next))
    // A process that has started meanwhile has seen no rotation; one that starts from now on sees it.
    await requireStopped(locations)
    if (inference) {
      const unopened = await resealAgents(openAgentCollections(inference), ...both('secrets of callers'))
      if (unopened > 0) say(`${unopened} agents and versions have headers that neither secret opens: they stay as they are.`)
    }
    if (isBegun) {
      await resealEndpoints(accounts, ...both('webhook secrets'))
      await endRotation({ collections: accounts, secret, secretFingerprint: null }, next)
    }
  }
  if (environmentSecret) return say('The data depends on the new secret. Set KIS_SECRET to it in every process, and start the service.')
  renameSync(secretFiles.next, secretFiles.secret)
  syncFolder(locations.dataDirectory)
  say(`The data depends on the new secret, which is in ${secretFiles.secret}. Start the service.`)
}

/** Returns null if the data folder belongs to a process without such a store. */
async function openStore({ dataDirectory, mongodb }: StoreLocations, subgraph: keyof typeof KINDS): Promise<DocumentStore | null> {
  if (mongodb) {
    const [{ connectMongo }, { documentsOf }] = await Promise.all([
      import('../../subgraphs/common/adapters/mongodb/connection.ts'),
      import('../../subgraphs/common/adapters/mongodb/document-store.ts'),
    ])
    const database = mongodb[subgraph]
    return documentsOf(await connectMongo(database), database.database)
  }
  const { path } = dataFiles(dataDirectory)[subgraph]
  // The file of a running service is locked.
  return existsSync(path) ? openSqliteDocumentStore({ file: path, kinds: KINDS[subgraph], log: silentLog }) : null
}

async function requireStopped({ mongodb }: StoreLocations): Promise<void> {
  if (!mongodb) return
  const { isInUse } = await import('../archive/read-mark.ts')
  for (const database of Object.values(mongodb))
    if (await isInUse(database))
      throw new Error(
        `A process of the service uses the database ${database.database} in MongoDB. Stop all processes, and run this again. One that was killed counts as stopped after 2 minutes.`,
      )
}

/** Returns the next secret of the data folder, which an interrupted rotation may have created. */
function loadOrCreateNext(file: string): Uint8Array {
  if (!existsSync(file)) {
    const beside = `${file}.new`
    writeFileSync(beside, newSecretText(), { mode: 0o600, flush: true })
    renameSync(beside, file)
    syncFolder(dirname(file))
  }
  return readSecretFile(file, dirname(file))
}
