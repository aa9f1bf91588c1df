import { BILLING_KINDS } from '../subgraphs/billing/migrations.ts'
import { requireSecret } from '../subgraphs/billing/portable.ts'
import { type OwnDocumentsOptions, openOwnDocuments } from '../subgraphs/common/adapters/own-documents.ts'
import { DataFolder } from '../subgraphs/common/adapters/sqlite/data-folder.ts'
import { systemClock } from '../subgraphs/common/process/clock.ts'
import { idSource } from '../subgraphs/common/process/ids.ts'
import { createLog } from '../subgraphs/common/process/log.ts'
import { Opening } from '../subgraphs/common/process/opening.ts'
import { INFERENCE_KINDS } from '../subgraphs/inference/migrations.ts'
import { KNOWLEDGE_KINDS } from '../subgraphs/knowledge/migrations.ts'
import type { Config } from './settings/config.ts'
import { dataFiles } from './settings/data-files.ts'
import { ownFiles } from './settings/own-files.ts'
import { untilOpen } from './until-open.ts'

/**
 * Migrates all documents, as the start of every role does. `say` gets what it waits for, and what is done.
 * @throws {Error} a store is of another installation or another secret, damaged, or of a newer version
 */
export async function migrateStores(config: Config, say: (line: string) => void): Promise<void> {
  const { billing, inference, knowledge } = config.settings
  const log = createLog('migrate', config.logLevel)
  const files = dataFiles(config.dataDirectory)
  const newId = () => idSource(systemClock)('inst')
  let id: string | undefined
  const readInstallationId = () => (id === undefined ? null : Promise.resolve(id))
  const folder = new DataFolder({ files: ownFiles(config, 'all'), readInstallationId, newId })
  const migrated = async (part: string, options: Omit<OwnDocumentsOptions, 'log'>) => {
    const open = async () => {
      const { store, installation } = await openOwnDocuments({ ...options, log })
      await store[Symbol.asyncDispose]()
      return installation
    }
    const { signal } = new AbortController()
    const opening = new Opening({ part, open, clock: systemClock, signal })
    await untilOpen([opening.opened], () => opening.problems(signal), say, signal)
    id = (await opening.opened).id
    say(`${part}: the documents have the version of this program`)
  }
  const claim = { id: null, newId } as const
  const own = async () => (billing.mongodb ? { id: id! } : (await folder.inspect()).installation)
  await migrated('billing', {
    mongodb: billing.mongodb,
    file: files.billing.path,
    own,
    claim,
    kinds: BILLING_KINDS,
    inspect: requireSecret(config.secret),
  })
  await migrated('inference', { mongodb: inference.mongodb, file: files.inference.path, own, kinds: INFERENCE_KINDS })
  await migrated('knowledge', { mongodb: knowledge.mongodb, file: files.knowledge.path, own, kinds: KNOWLEDGE_KINDS })
}
