import { randomBytes } from 'node:crypto'
import { accountsOf, openAccountCollections } from '../../subgraphs/billing/portable.ts'
import { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import { sealedBy } from '../../subgraphs/common/identity/secrets.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { exportAgents, openAgentCollections } from '../../subgraphs/inference/portable.ts'
import { exportKnowledge, knowledgeStore } from '../../subgraphs/knowledge/portable.ts'
import type { Config } from '../settings/config.ts'
import type { StoreLocations } from '../settings/servers.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { FORMAT } from './format.ts'
import { seal } from './sealed-secret.ts'
import { openToRead } from './stores.ts'

interface ExportOptions {
  readonly config: Config
  readonly locations: StoreLocations
  readonly organizationId: string
  /** The archive to make. */
  readonly file: string
  /** The passphrase of the secrets in the archive; null: secrets stay behind. */
  readonly passphrase: string | null
}

/**
 * Writes one organization to an archive. The service may run meanwhile. The archive gets its name when it is complete.
 * @throws {Error} there is no such organization, the file exists, or a store fails
 */
export async function exportOrganization({ config, locations, organizationId, file, passphrase }: ExportOptions) {
  await using stores = await openToRead(locations)
  const begun = stores.snapshotAt ?? new Date()
  const accounts = await accountsOf(openAccountCollections(stores.documents.billing), organizationId)
  const key = passphrase === null ? null : randomBytes(32)
  const { name } = accounts.organization
  const models = config.settings.catalog.models.flatMap(({ id, dimensions, engineModel }) =>
    dimensions === null ? [] : { id, dimensions, engineModel },
  )
  await using archive = await ArchiveWriter.create(file, {
    what: 'kis-archive',
    format: FORMAT,
    id: idSource(systemClock)('exp'),
    scope: { what: 'organization', id: organizationId, name, models },
    ...VERSIONS,
    begunAt: begun.toISOString(),
    secret: key && seal(key, passphrase!, organizationId),
  })
  await accounts.write(archive)
  const own = { secrets: sealedBy(config.secret, 'secrets of callers'), organizationId }
  const sealing = key && { own, archive: { secrets: new SealedTexts(key), organizationId } }
  await exportAgents({ collections: openAgentCollections(stores.documents.inference), organizationId, sealing }, archive)
  await exportKnowledge({ store: knowledgeStore(stores.documents.knowledge), blobs: stores.blobs, organizationId }, archive)
  return { name, ...(await archive.finish({ from: begun.toISOString(), to: (stores.snapshotAt ?? new Date()).toISOString() })) }
}
