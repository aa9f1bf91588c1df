import { createHash } from 'node:crypto'
import { encodeDocument, toStored } from '../../subgraphs/common/adapters/documents/stored-value.ts'
import { readStoredSecret } from '../../subgraphs/common/identity/secret-file.ts'
import { fingerprintSecret } from '../../subgraphs/common/identity/secrets.ts'
import type { StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { TASK_LEASES } from '../../subgraphs/common/process/tasks.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import type { StoreLocations } from '../settings/servers.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { FORMAT } from './format.ts'
import { type Sealed, seal } from './sealed-secret.ts'
import { kindVersions, listCollections, type Marked, type NamedCollection, openToRead, type ReadStores, SUBGRAPHS } from './stores.ts'

/** The kind of the lines that name the keys of the bytes that follow. */
export const CONTENTS = 'knowledge/contents'
/** Kinds that processes write every few seconds. They are no data. */
const HEARTBEATS: readonly string[] = ['inference/replicas', ...SUBGRAPHS.map((subgraph) => `${subgraph}/${TASK_LEASES.name}`)]

/** The port's limit of documents in a page. */
const MAX_PAGE = 1_000
const FIRST_PAGE = 32
/** Target size of a page, in characters of JSON. */
const PAGE_CHARACTERS = 4 * 1024 * 1024
/** Most contents of one group, unless their bytes reach the limit first. A larger content is a group of its own. */
const GROUP = 500
const GROUP_BYTES = 8 * 1024 * 1024
/**
 * From this size on, equal contents are written once; and the most contents that are compared. Each takes some 200
 * bytes of memory.
 */
export const LARGE_BYTES = 1024 * 1024
const MAX_LARGE = 1_000_000

interface InstallationExport {
  readonly locations: StoreLocations
  readonly environmentSecret: Uint8Array | null
  readonly file: string
  /** Null: the secret is not exported. */
  readonly passphrase: string | null
  readonly say: (line: string) => void
}

/**
 * Writes all data of an installation to an archive. The service may run meanwhile, unless its stores have no snapshots
 * and it writes.
 * @throws {Error} the file exists, a store fails or is corrupted, or data has changed since it was read
 */
export async function exportInstallation({ locations, environmentSecret, file, passphrase, say }: InstallationExport) {
  await using stores = await openToRead(locations)
  const { installation } = stores
  const secret = passphrase === null ? null : sealSecret(locations.dataDirectory, installation, environmentSecret, passphrase)
  const begun = stores.snapshotAt ?? new Date()
  await using archive = await ArchiveWriter.create(file, {
    what: 'kis-archive',
    format: FORMAT,
    id: idSource(systemClock)('exp'),
    scope: { what: 'installation', ...installation, kinds: kindVersions() },
    ...VERSIONS,
    begunAt: begun.toISOString(),
    secret,
  })
  if (!stores.snapshotAt)
    say(
      'These databases have no common snapshot, so the export reads everything twice. Stop the processes of the service, or leave them idle.',
    )
  const before = await readRecords(stores, (name, line) => archive.line(name, line))
  await writeContents(stores, archive)
  if (!stores.snapshotAt) await refuseChanged(stores, before)
  const moment = (stores.snapshotAt ?? new Date()).toISOString()
  return await archive.finish({ from: moment, to: moment })
}

type Sums = ReadonlyMap<string, string>

/** Reads all records, and the keys of the contents. Returns the checksum of each kind. */
async function readRecords(stores: ReadStores, write: (name: string, line: string) => Promise<void>): Promise<Sums> {
  const sums = new Map<string, string>()
  for (const { name, collection } of listCollections(stores.documents)) {
    const lines = createHash('sha256')
    for await (const page of listPages(collection)) {
      for (const document of page) {
        const line = encodeDocument(toStored(document, name))
        lines.update(`${line}\n`)
        await write(name, line)
      }
    }
    sums.set(name, lines.digest('hex'))
  }
  const keys = createHash('sha256')
  for await (const { key, sizeBytes } of listBlobs(stores)) keys.update(`${key} ${sizeBytes}\n`)
  return sums.set(CONTENTS, keys.digest('hex'))
}

/**
 * Reads everything again. If nothing has changed, the archive shows the moment when the first reading ended.
 * @throws {Error} something has changed since it was read
 */
async function refuseChanged(stores: ReadStores, before: Sums): Promise<void> {
  const after = await readRecords(stores, async () => undefined)
  const changed = [...before].filter(([name, sum]) => !HEARTBEATS.includes(name) && after.get(name) !== sum).map(([name]) => name)
  if (changed.length > 0)
    throw new Error(
      `Records changed while they were read: ${changed.join(', ')}. Stop the processes of the service, and export again; or use the backup tools of the databases.`,
    )
}

/** Yields all documents in the order of their IDs, in pages of some 4 MB. */
async function* listPages(documents: NamedCollection['collection']): AsyncGenerator<readonly StoredDocument[]> {
  let limit = FIRST_PAGE
  for (let after = ''; ; ) {
    const page = await documents.find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit })
    if (page.length > 0) yield page
    if (page.length < limit) return
    after = page.at(-1)!._id
    const characters = JSON.stringify(page).length
    limit = Math.max(1, Math.min(MAX_PAGE, limit * 2, Math.floor((PAGE_CHARACTERS / characters) * page.length)))
  }
}

async function* listBlobs({ blobs }: Pick<ReadStores, 'blobs'>) {
  for (let after = ''; ; ) {
    const page = await blobs.list(after, GROUP)
    yield* page
    if (page.length < GROUP) return
    after = page.at(-1)!.key
  }
}

/**
 * Writes groups of contents: a line for each, then their bytes in the same order, each under its digest. Equal large
 * contents are written once: the lines of the others name the first key.
 */
async function writeContents(stores: ReadStores, archive: ArchiveWriter): Promise<void> {
  let group: { readonly sha256: string; readonly bytes: Uint8Array }[] = []
  let size = 0
  /** Keys of large contents by digest. */
  const large = new Map<string, string>()
  const flush = async () => {
    for (const { sha256, bytes } of group) await archive.file(`contents/${sha256}`, bytes.length, bytes)
    group = []
    size = 0
  }
  for await (const { key, sizeBytes } of listBlobs(stores)) {
    if (group.length === GROUP || (group.length > 0 && size + sizeBytes > GROUP_BYTES)) await flush()
    const bytes = await stores.blobs.get(key)
    if (!bytes) throw new Error(`The bytes ${key} were deleted while they were read. Export again.`)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const sameAs = large.get(sha256)
    // The bytes that the line refers to must come first.
    if (sameAs !== undefined) await flush()
    await archive.line(CONTENTS, JSON.stringify({ key, sha256, sizeBytes: bytes.length, sameAs }))
    if (sameAs !== undefined) continue
    if (bytes.length >= LARGE_BYTES && large.size < MAX_LARGE) large.set(sha256, key)
    group.push({ sha256, bytes })
    size += bytes.length
  }
  await flush()
}

/** @throws {Error} the secret is missing, or is not that of the data */
function sealSecret(
  dataDirectory: string,
  { id, secretFingerprint }: Marked,
  environmentSecret: Uint8Array | null,
  passphrase: string,
): Sealed {
  const secret = environmentSecret ?? readStoredSecret(dataDirectory)
  if (fingerprintSecret(secret) !== secretFingerprint)
    throw new Error('The secret is not that of the data. Set KIS_SECRET to the secret of the service.')
  return seal(secret, passphrase, id)
}
