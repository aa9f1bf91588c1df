import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { endImport, findHalfImported, startImport } from '../../subgraphs/billing/import-mark.ts'
import { type AnyDocument, migrated } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { withDates } from '../../subgraphs/common/adapters/documents/stored-value.ts'
import { secretFilesOf } from '../../subgraphs/common/identity/secret-file.ts'
import { fingerprintSecret } from '../../subgraphs/common/identity/secrets.ts'
import type { StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { fillIndex, knowledgeStore } from '../../subgraphs/knowledge/portable.ts'
import type { StoreLocations } from '../settings/servers.ts'
import type { ArchiveListener, ArchiveReader } from './archive-reader.ts'
import { syncFolder } from './archive-writer.ts'
import { CONTENTS, LARGE_BYTES } from './export-installation.ts'
import type { InstallationScope, Manifest } from './format.ts'
import { NOT_WHOLE, References } from './references.ts'
import { open } from './sealed-secret.ts'
import { kindVersions, listCollections, listKinds, openToWrite, type WriteStores } from './stores.ts'

/** The port's limit of one write. */
const MAX_INSERTED = 1_000
/** Bytes of one content: more than any content of the blob store has. */
const MAX_CONTENT_BYTES = 256 * 1024 * 1024

const RECORD = z.looseObject({ _id: z.string().min(1).max(1_000) })
const CONTENT = z.strictObject({
  key: z.string().min(1).max(1_000),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.int().min(0).max(MAX_CONTENT_BYTES),
  /** The key of equal bytes that came before. No bytes follow this line. */
  sameAs: z.string().min(1).max(1_000).optional(),
})
type Content = z.output<typeof CONTENT>

/** Receives the content of an installation's archive, in its order. */
interface Takers {
  documents(kind: string, documents: readonly StoredDocument[]): Promise<void>
  content(content: Content, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Stores the bytes that another key has. */
  copy(key: string, of: string, sha256: string): Promise<void>
}

interface InstallationImport {
  readonly archive: ArchiveReader
  readonly scope: InstallationScope
  readonly locations: StoreLocations
  readonly environmentSecret: Uint8Array | null
  /** Called if the archive has the secret and the environment has none. */
  passphrase(): Promise<string>
  readonly log: Log
  readonly say: (line: string) => void
}

/**
 * Reads all of an archive. Returns the references to what it lacks.
 * @throws {Error} it is corrupted, or of a newer version
 */
export async function checkInstallation(archive: ArchiveReader, scope: InstallationScope) {
  const versions = kindVersions()
  const newer = Object.entries(scope.kinds).find(([kind, version]) => version > (versions[kind] ?? 0))
  if (newer) throw new Error(`The archive has ${newer[0]} in version ${newer[1]}, which this version of the program does not know.`)
  const references = new References()
  /** Digests of large contents by key. */
  const large = new Map<string, string>()
  const manifest = await archive.read(
    listenerOf({
      async documents(kind, documents) {
        if (!(kind in versions)) throw new Error(`The archive is corrupted: it has records of the unknown kind ${JSON.stringify(kind)}.`)
        for (const document of documents) references.addStored(kind, document)
      },
      async content({ key, sha256, sizeBytes }, bytes) {
        const hash = createHash('sha256')
        for await (const part of bytes) hash.update(part)
        if (hash.digest('hex') !== sha256) throw new Error(`The archive is corrupted: the SHA-256 of the bytes ${key} differs.`)
        references.addBytes(key)
        if (sizeBytes >= LARGE_BYTES) large.set(key, sha256)
      },
      async copy(key, of, sha256) {
        if (large.get(of) !== sha256) throw new Error(`The archive is corrupted: the bytes ${key} are not those of ${of}.`)
        references.addBytes(key)
      },
    }),
  )
  return { manifest, problems: references.problems() }
}

/**
 * Writes all data of an archive to empty stores, and returns the documents whose vectors the archive lacks. Until the
 * end no process starts on the stores. If the import is interrupted, repeat it: it continues.
 * @throws {Error} the archive is corrupted, the stores have other data, or a secret is wrong
 */
export async function importInstallation({
  archive,
  scope,
  locations,
  environmentSecret,
  passphrase,
  log,
  say,
}: InstallationImport): Promise<{ readonly manifest: Manifest; readonly lacking: readonly string[] }> {
  const { id, secretFingerprint } = scope
  const { secret: sealed } = archive.head
  if (environmentSecret && fingerprintSecret(environmentSecret) !== secretFingerprint)
    throw new Error('KIS_SECRET differs from the secret of the archive, so no API key would work. Set it to the secret of the archive.')
  const secret = sealed && !environmentSecret ? open(sealed, await passphrase(), id) : null
  if (sealed && !environmentSecret && !secret)
    throw new Error('The passphrase is not the one that the secret in the archive was sealed with.')
  const { problems } = await checkInstallation(archive, scope)
  for (const problem of problems) say(`${NOT_WHOLE}: ${problem}.`)
  mkdirSync(locations.dataDirectory, { recursive: true, mode: 0o700 })
  await using stores = await openToWrite(locations, { installation: { id }, log })
  await claimStores(stores, archive.head.id)
  if (secret) storeSecret(locations.dataDirectory, secret)
  const collections = new Map(listCollections(stores.documents).map(({ name, collection }) => [name, collection]))
  const kinds = listKinds()
  const manifest = await archive.read(
    listenerOf({
      async documents(kind, documents) {
        const converted = documents.map((document) => migrated(document as AnyDocument, kinds.get(kind)!, scope.kinds[kind] ?? 1))
        for (let from = 0; from < converted.length; from += MAX_INSERTED)
          await collections.get(kind)!.insertMissing(converted.slice(from, from + MAX_INSERTED))
      },
      async content({ key, sizeBytes }, bytes) {
        const parts: Uint8Array[] = []
        for await (const part of bytes) parts.push(part)
        await stores.blobs.put(key, Buffer.concat(parts, sizeBytes))
      },
      async copy(key, of) {
        await stores.blobs.put(key, (await stores.blobs.get(of))!)
      },
    }),
  )
  const store = knowledgeStore(stores.documents.knowledge)
  const lacking = await fillIndex({ store, blobs: stores.blobs, index: stores.index }, () => undefined)
  await endImport(stores.documents.billing)
  return { manifest, lacking }
}

/** @throws {Error} the stores have other data */
async function claimStores({ documents, blobs, index }: WriteStores, archive: string): Promise<void> {
  const half = await findHalfImported(documents.billing)
  if (half === archive) return
  if (half !== null) throw new Error('An import of another archive into these stores has not ended: repeat that one, or delete the stores.')
  for (const { name, collection } of listCollections(documents))
    if ((await collection.countDocuments({}, { limit: 1 })) > 0) throw notEmpty(name)
  if ((await blobs.list('', 1)).length > 0) throw notEmpty('contents of files')
  if ((await index.listCollections('', 1)).length > 0) throw notEmpty('a chunk index')
  await startImport(documents.billing, archive)
}

const notEmpty = (what: string) =>
  new Error(
    `The stores are not empty: they have ${what}. An import of all data needs an empty data folder, or other databases and another index prefix.`,
  )

function storeSecret(dataDirectory: string, secret: Uint8Array): void {
  const { secret: file } = secretFilesOf(dataDirectory)
  if (existsSync(file) && readFileSync(file).equals(secret)) return
  writeFileSync(file, secret, { flag: 'wx', mode: 0o600, flush: true })
  syncFolder(dataDirectory)
}

/** Returns a listener that pairs each group of lines about contents with the bytes that follow. */
function listenerOf(takers: Takers): ArchiveListener {
  let expected: Content[] = []
  const end = () => {
    if (expected.length > 0) throw new Error(`The archive is corrupted: the bytes ${expected[0]!.key} are missing.`)
  }
  return {
    end,
    async records(kind, values) {
      end()
      if (kind === CONTENTS) {
        const contents = values.map((value) => checked(CONTENT, value, kind))
        for (const { key, sha256, sameAs } of contents) if (sameAs !== undefined) await takers.copy(key, sameAs, sha256)
        expected = contents.filter(({ sameAs }) => sameAs === undefined)
      } else
        await takers.documents(
          kind,
          values.map((value) => withDates(checked(RECORD, value, kind) as never) as StoredDocument),
        )
    },
    async file(_folder, name, sizeBytes, bytes) {
      const content = expected.shift()
      if (content?.sha256 !== name || content.sizeBytes !== sizeBytes)
        throw new Error(`The archive is corrupted: it has bytes ${name} that no record refers to.`)
      await takers.content(content, bytes)
    },
  }
}

function checked<T>(schema: z.ZodType<T>, value: unknown, kind: string): T {
  const { data, error } = schema.safeParse(value)
  if (error) throw new Error(`The archive is corrupted: ${kind}: ${z.prettifyError(error).split('\n')[0]}`)
  return data as T
}
