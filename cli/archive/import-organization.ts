import { explainHalfImported } from '../../subgraphs/billing/import-mark.ts'
import { type ImportedRules, importAccounts, openAccountCollections, pepperOf, requireSecret } from '../../subgraphs/billing/portable.ts'
import { SealedTexts } from '../../subgraphs/common/identity/sealed-text.ts'
import { sealedBy } from '../../subgraphs/common/identity/secrets.ts'
import type { ArchiveTakers, RecordTaker } from '../../subgraphs/common/portable/organization-archive.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import type { CatalogFile } from '../../subgraphs/inference/domain/catalog/catalog-file.ts'
import { agentTakers, openAgentCollections } from '../../subgraphs/inference/portable.ts'
import { countImported, knowledgeStore, knowledgeTakers } from '../../subgraphs/knowledge/portable.ts'
import type { Config } from '../settings/config.ts'
import type { StoreLocations } from '../settings/servers.ts'
import type { ArchiveListener, ArchiveReader } from './archive-reader.ts'
import type { Manifest, OrganizationScope } from './format.ts'
import { References } from './references.ts'
import { open } from './sealed-secret.ts'
import { openToWrite } from './stores.ts'

interface ImportOptions {
  readonly config: Config
  readonly locations: StoreLocations
  readonly archive: ArchiveReader
  readonly scope: OrganizationScope
  /** The ID that the organization gets; null: its own. */
  readonly as: string | null
  /** Reads and checks everything, also against the stores, and writes nothing. */
  readonly check: boolean
  /** Returns the passphrase. Called if the archive has secrets. */
  passphrase(): Promise<string>
  readonly log: Log
}

interface ImportResult {
  readonly organizationId: string
  readonly manifest: Manifest
  /** Rules of the archive that only an operator may decide on. */
  readonly rules: ImportedRules
  /** The organization was imported from this archive before, so nothing was done. */
  readonly wasDone: boolean
  /** The secret of the admin key of the import, until its first use; null: it was used, or nothing was imported. */
  readonly key: string | null
  /** Models of agents that the catalog lacks. */
  readonly lackingModels: readonly string[]
  /** References of the records to what the archive lacks. */
  readonly problems: readonly string[]
}

/** The first record of an archive, and its only one of this kind. */
const FIRST = 'billing/organization'
const NO_ORGANIZATION = 'The archive is corrupted: it does not begin with one organization.'

/**
 * Imports an organization: all of it, or nothing that is visible. The archive is read twice: first everything is
 * checked, then it is written to an organization that is suspended until the end. If the import is interrupted, repeat
 * it: it continues.
 * @throws {Error} the archive is corrupted, a part of it exists here already, or a model or plan is missing here
 */
export async function importOrganization({
  config,
  locations,
  archive,
  scope,
  as,
  check,
  passphrase,
  log,
}: ImportOptions): Promise<ImportResult> {
  const { id, secret } = archive.head
  const organizationId = as ?? scope.id
  const key = secret && open(secret, await passphrase(), scope.id)
  if (secret && !key) throw new Error('The passphrase is not the one that the secrets in the archive were sealed with.')
  const models = new Set<string>()
  const found: ImportedRules[] = []
  await using stores = await openToWrite(locations, { installation: null, inspect: requireSecret(config.secret), log })
  const problem = await explainHalfImported(stores.documents.billing)
  if (problem) throw new Error(problem)
  const store = knowledgeStore(stores.documents.knowledge)
  const own = { collections: openAccountCollections(stores.documents.billing), clock: systemClock, ids: idSource(systemClock) }
  const opening = { ...own, secret: config.secret, secretFingerprint: stores.secretFingerprint }
  const pepper = await pepperOf(opening, config.settings.billing.bootstrapCreditNanoUsd, check)
  const accounts = importAccounts(
    {
      plans: config.settings.catalog.plans,
      ...own,
      onOrganization: (rules) => found.push(rules),
    },
    { organizationId, archive: id },
  )
  const takers: readonly ArchiveTakers[] = [
    accounts.takers,
    agentTakers({
      collections: openAgentCollections(stores.documents.inference),
      organizationId,
      sealing: key && {
        archive: { secrets: new SealedTexts(key), organizationId: scope.id },
        own: { secrets: sealedBy(config.secret, 'secrets of callers'), organizationId },
      },
      onModel: (model) => models.add(model),
    }),
    knowledgeTakers({
      store,
      blobs: stores.blobs,
      index: stores.index,
      organizationId,
      explainModel: (model, dimensions) => explainModel(config.settings.catalog, scope, model, dimensions),
      clock: systemClock,
      log,
    }),
  ]
  const state = await accounts.state()
  const references = new References()
  const manifest = await archive.read(listener(takers, 'check', references))
  const problems = references.problems()
  for (const each of takers) each.requireAll?.()
  const [rules] = found
  if (!rules || manifest.records[FIRST] !== 1) throw new Error(NO_ORGANIZATION)
  if (check) return { organizationId, manifest, rules, wasDone: state === 'done', key: null, lackingModels: [], problems }
  if (state !== 'done') {
    await archive.read(listener(takers, 'write'))
    await countImported({ store, organizationId })
  }
  const adminKey = await accounts.finish(pepper!)
  const lackingModels = [...models].filter(
    (model) => !config.settings.catalog.models.some(({ id, aliases }) => id === model || aliases.includes(model)),
  )
  return { organizationId, manifest, rules, wasDone: state === 'done', key: adminKey, lackingModels, problems }
}

/** Returns a listener that passes each kind of record to the parts that check or write it. */
function listener(takers: readonly ArchiveTakers[], step: 'check' | 'write', references?: References): ArchiveListener {
  const records = new Map<string, RecordTaker>(takers.flatMap((each) => each.records.map((one) => [one.kind.name, one] as const)))
  const files = new Map(takers.flatMap((each) => each.files.map((one) => [one.folder, one] as const)))
  let isBegun = false
  return {
    async records(name, values) {
      const taker = records.get(name)
      if (!taker) throw new Error(`The archive is corrupted: it has records of the unknown kind ${JSON.stringify(name)}.`)
      if ((name === FIRST) === isBegun || (name === FIRST && values.length !== 1)) throw new Error(NO_ORGANIZATION)
      isBegun = true
      const parsed = values.map((value, i) => {
        try {
          return taker.kind.parse(value) as never
        } catch (error) {
          throw new Error(`The archive is corrupted: ${name}, ${i + 1}: ${(error as Error).message}`, { cause: error })
        }
      })
      for (const record of parsed) references?.add(name, record)
      await taker[step]?.(parsed)
    },
    async file(folder, name, sizeBytes, bytes) {
      const taker = files.get(folder)!
      taker.check(name, sizeBytes)
      if (step === 'write') await taker.write(name, sizeBytes, bytes)
    },
  }
}

/**
 * Explains why a collection cannot be imported: vectors of two models cannot be compared, so a collection needs its own
 * model.
 */
function explainModel({ models }: CatalogFile, scope: OrganizationScope, id: string, dimensions: number): string | null {
  const here = models.find((model) => model.id === id)
  const there = scope.models.find((model) => model.id === id)
  const fix = 'Add it to catalog.yaml as it was there, or change the model of the collection before the export.'
  if (here?.kind !== 'embedding') return `A collection has vectors of the embedding model ${id}, which the catalog here lacks. ${fix}`
  if (here.dimensions !== dimensions || (there && there.engineModel !== here.engineModel))
    return `A collection has vectors of the embedding model ${id} (${there?.engineModel ?? 'unknown'}, ${dimensions} numbers), and ${id} is another model here (${here.engineModel}, ${here.dimensions} numbers). ${fix}`
  return null
}
