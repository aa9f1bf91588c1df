import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { findHalfImported } from '../../subgraphs/billing/import-mark.ts'
import type { CollectionSpec, StoredDocument, StoredValue } from '../../subgraphs/common/ports/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { ELASTICSEARCH, testIndices } from '../../test/support/engines/elasticsearch.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../test/support/engines/mongodb.ts'
import { readStoreLocations, type StoreLocations } from '../settings/servers.ts'
import { ArchiveReader } from './archive-reader.ts'
import { exportInstallation, LARGE_BYTES } from './export-installation.ts'
import type { InstallationScope } from './format.ts'
import { importInstallation } from './import-installation.ts'
import { listCollections, openToRead, openToWrite, type ReadStores, SUBGRAPHS } from './stores.ts'

const MONGODB = process.env.KIS_TEST_MONGODB_URL
const ELASTICSEARCH_URL = process.env[ELASTICSEARCH]
const INSTALLATION = { id: 'inst_1' }
const ORGANIZATION = `org_${'1'.repeat(32)}`
const COLLECTION = `col_${'1'.repeat(32)}`

/**
 * For each kind of stored records, its kind in an archive of one organization, or the reason why such an archive lacks it.
 */
const OF_ORGANIZATIONS: Readonly<Record<string, string>> = {
  'billing/organizations': 'billing/organization',
  'billing/organization_changes': 'report/changes',
  'billing/api_keys': 'billing/api-keys',
  'billing/members': 'billing/members',
  'billing/invitations': 'stays: an invitation is a link to this installation',
  'billing/sessions': 'stays: a session is a cookie of this installation',
  'billing/erasures': 'stays: a receipt is of what was here',
  'billing/wallets': 'report/wallet',
  'billing/ledger_entries': 'report/ledger',
  'billing/usage_records': 'report/usage',
  'billing/usage_totals': 'stays: sums of usage records',
  'billing/bootstrap': 'stays: of the installation',
  'billing/task_leases': 'stays: of processes',
  'billing/webhook_endpoints': 'billing/webhooks',
  'billing/webhook_feeds': 'stays: of the log of events',
  'billing/webhook_events': 'stays: of the log of events',
  'billing/webhook_deliveries': 'stays: of the log of events',
  'billing/webhook_lanes': 'stays: of the log of events',
  'inference/agents': 'inference/agents',
  'inference/agent_versions': 'inference/agent-versions',
  'inference/runs': 'inference/runs',
  'inference/events': 'stays: the log of events',
  'inference/event_heads': 'stays: the log of events',
  'inference/run_events': 'inference/run-events',
  'inference/run_given': 'stays: of running runs',
  'inference/kept_runs': 'inference/kept-runs',
  'inference/threads': 'inference/threads',
  'inference/workflows': 'inference/workflows',
  'inference/workflow_versions': 'inference/workflow-versions',
  'inference/workflow_runs': 'inference/workflow-runs',
  'inference/keyed_calls': 'stays: answers for Idempotency-Key',
  'inference/replicas': 'stays: of processes',
  'inference/task_leases': 'stays: of processes',
  'inference/key_rates': 'stays: of this minute',
  'knowledge/collections': 'knowledge/collections',
  'knowledge/files': 'knowledge/files',
  'knowledge/blobs': 'knowledge/bytes',
  'knowledge/uploads': 'stays: running uploads',
  'knowledge/web_sources': 'knowledge/web-sources',
  'knowledge/documents': 'knowledge/documents',
  'knowledge/sketches': 'stays: made from the text',
  'knowledge/usage': 'stays: counted by the import',
  'knowledge/gold_questions': 'knowledge/gold-questions',
  'knowledge/evaluations': 'knowledge/evaluations',
  'knowledge/evaluation_watches': 'knowledge/evaluation-watches',
  'knowledge/index_marks': 'stays: of the index',
  'knowledge/task_leases': 'stays: of processes',
  'knowledge/reembeddings': 'knowledge/reembeddings',
  'knowledge/events': 'stays: the log of events',
  'knowledge/event_heads': 'stays: the log of events',
}

/** Equal bytes of several keys, which an archive stores once. */
const LARGE = randomBytes(LARGE_BYTES)

const field = fc.stringMatching(/^f[a-zA-Z]{1,8}$/)
const scalar: fc.Arbitrary<StoredValue> = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.maxSafeInteger(),
  fc.boolean(),
  fc.constant(null),
  fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') }),
  fc.constant('{"$date": "no date"}'),
)
const { value } = fc.letrec<{ value: StoredValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(field, tie('value'), { maxKeys: 4 }),
  ),
}))

/** Generates any record of a kind, with the fields that its indexes and the chunk index need. */
function anyRecord(name: string, { indexes }: CollectionSpec): fc.Arbitrary<StoredDocument> {
  return fc.tuple(fc.uuid(), fc.dictionary(field, value, { maxKeys: 6 })).map(([id, fields]) => {
    const record: Record<string, StoredValue> = { ...fields }
    for (const { fields: paths, sparse } of indexes) {
      for (const path of paths) {
        const [first, ...rest] = path.split('.')
        if (sparse) delete record[first!]
        else record[first!] = rest.length > 0 ? { [rest[0]!]: `${first} ${id}` } : `${first} ${id}`
      }
    }
    const known = {
      organizationId: ORGANIZATION,
      chunkCount: 0,
      status: 'failed',
      liveGeneration: null,
      ...(name === 'knowledge/documents' && { collectionId: COLLECTION, listed: true }),
    }
    for (const path of indexes.flatMap(({ fields: paths }) => paths))
      if (path === 'organizationId' && indexes.every(({ unique }) => !unique)) record[path] = ORGANIZATION
    if (name === 'knowledge/collections') return { ...record, ...known, _id: COLLECTION, dimensions: 8, listed: true } as StoredDocument
    if (name === 'knowledge/documents') return { ...record, ...known, _id: `doc_${id}` } as StoredDocument
    if (name === 'billing/bootstrap')
      return { ...record, _id: 'operator', secretFingerprint: 'ab'.repeat(8), sealedPepper: 'sealed' } as StoredDocument
    if (name === 'knowledge/index_marks') return { _id: 'terms', version: 1 } as StoredDocument
    if (name === 'knowledge/blobs')
      return { ...record, dying: true, references: {}, counted: { value: 0 }, _id: id } as unknown as StoredDocument
    return { ...record, _id: name === 'billing/organizations' ? ORGANIZATION : id }
  })
}

/** Returns everything in the stores, by kind. */
async function everything({ documents, blobs }: Pick<ReadStores, 'documents' | 'blobs'>): Promise<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {}
  for (const { name, collection } of listCollections(documents))
    found[name] = name === 'knowledge/index_marks' ? [] : (await collection.find({}, { limit: 1_000 })).map(canonicalJson).sort()
  const listed = await blobs.list('', 1_000)
  found.contents = await Promise.all(
    listed.map(
      async ({ key }) =>
        `${key} ${createHash('sha256')
          .update((await blobs.get(key))!)
          .digest('hex')}`,
    ),
  )
  return found
}

const root = mkdtempSync(join(tmpdir(), 'kis-round-'))
let folderCount = 0
const folderLocations = (): StoreLocations => readStoreLocations({ KIS_DATA_DIR: join(root, `data-${++folderCount}`) }).locations

async function fill(locations: StoreLocations): Promise<void> {
  await using stores = await openToWrite(locations, { installation: INSTALLATION, log: silentLog })
  for (const subgraph of SUBGRAPHS) {
    const specs = new Map<string, CollectionSpec>()
    const noting = {
      collection(spec: CollectionSpec) {
        specs.set(spec.name, spec)
        return stores.documents[subgraph].collection(spec)
      },
    }
    for (const { name, collection } of listCollections({ ...stores.documents, [subgraph]: noting as never })) {
      const spec = name.startsWith(`${subgraph}/`) && specs.get(name.slice(subgraph.length + 1))
      if (spec) await collection.insertMissing(fc.sample(anyRecord(name, spec), 5))
    }
  }
  for (const size of [0, 1, 1_000, 3 * 1024 * 1024]) await stores.blobs.put(`key_${size}`, randomBytes(size))
  for (const key of ['first', 'key_4', 'last']) await stores.blobs.put(key, LARGE)
}

const exported = async (locations: StoreLocations): Promise<string> => {
  const file = join(root, `archive-${++folderCount}.kis`)
  await exportInstallation({ locations, environmentSecret: null, file, passphrase: null, say: () => undefined })
  return file
}
const imported = async (file: string, locations: StoreLocations) => {
  const archive = await ArchiveReader.open(file)
  const { scope } = archive.head
  if (scope.what !== 'installation') throw new Error('is of an organization')
  return importInstallation({
    archive,
    scope,
    locations,
    environmentSecret: null,
    passphrase: async () => '',
    log: silentLog,
    say: () => undefined,
  })
}
const seen = async (locations: StoreLocations) => {
  await using stores = await openToRead(locations)
  return await everything(stores)
}

describe('Archives', () => {
  const dropping = new AsyncDisposableStack()
  afterAll(async () => {
    await dropping.disposeAsync()
    rmSync(root, { recursive: true })
  })

  it('every kind of record is in an archive of one organization, or is excluded for a reason', () => {
    const nobody = { collection: () => ({}) } as never
    const names = listCollections({ billing: nobody, inference: nobody, knowledge: nobody }).map(({ name }) => name)
    expect(names.toSorted()).toEqual(Object.keys(OF_ORGANIZATIONS).sort())
  })

  it('any records of every kind, and contents of any size, are the same after an export and an import', async () => {
    const from = folderLocations()
    await fill(from)
    const before = await seen(from)
    for (const [name, records] of Object.entries(before))
      if (name !== 'knowledge/index_marks') expect([name, records.length]).not.toEqual([name, 0])
    const to = folderLocations()
    const { manifest } = await imported(await exported(from), to)
    expect(manifest.files).toEqual({ count: 5, bytes: 1_001 + 3 * 1024 * 1024 + LARGE_BYTES })
    expect(await seen(to)).toEqual(before)
    await expect(imported(await exported(from), to)).rejects.toThrow(/not empty/)
  }, 120_000)

  it('an interrupted import refuses another archive, and continues with the same one', async () => {
    const from = folderLocations()
    await fill(from)
    const [file, other] = [await exported(from), await exported(from)]
    const to = folderLocations()
    const archive = await ArchiveReader.open(file)
    const { read } = archive
    let passes = 0
    archive.read = (listener) =>
      read.call(archive, ++passes === 1 ? listener : { ...listener, file: async () => Promise.reject(new Error('cut off')) })
    const { scope } = archive.head as unknown as { scope: InstallationScope }
    const options = {
      archive,
      scope,
      locations: to,
      environmentSecret: null,
      passphrase: async () => '',
      log: silentLog,
      say: () => undefined,
    }
    await expect(importInstallation(options)).rejects.toThrow('cut off')
    await expect(seen(to)).rejects.toThrow(/has not ended/)
    await expect(imported(other, to)).rejects.toThrow(/another archive/)
    await imported(file, to)
    expect(await seen(to)).toEqual(await seen(from))
  }, 120_000)

  it('a failed export leaves no file', async () => {
    const from = folderLocations()
    await expect(exported(from)).rejects.toThrow(/has no data/)
    expect(existsSync(from.dataDirectory)).toBe(false)
    expect(readdirSync(root).filter((name) => name.endsWith('.part'))).toEqual([])
  })

  it.skipIf(!MONGODB || !ELASTICSEARCH_URL)(
    'records are the same on MongoDB and Elasticsearch, and back in a data directory',
    async () => {
      const from = folderLocations()
      await fill(from)
      const before = await seen(from)
      const database = newDatabaseName()
      const indices = testIndices(ELASTICSEARCH_URL!)
      dropping.defer(async () => {
        await indices.dropAll()
        await dropServiceDatabases(MONGODB!, database)
      })
      const servers = readStoreLocations({
        KIS_DATA_DIR: join(root, 'unused'),
        KIS_MONGODB_URL: withDatabase(MONGODB!, database),
        KIS_ELASTICSEARCH_URL: ELASTICSEARCH_URL,
        KIS_ELASTICSEARCH_PREFIX: indices.newPrefix(),
        KIS_ELASTICSEARCH_REPLICAS: '0',
      }).locations
      await imported(await exported(from), servers)
      const there = await seen(servers)
      for (const [name, records] of Object.entries(before)) expect([name, there[name]]).toEqual([name, records])
      const back = folderLocations()
      await imported(await exported(servers), back)
      expect(await seen(back)).toEqual(before)
      await using stores = await openToRead(back)
      expect(await findHalfImported(stores.documents.billing)).toBe(null)
    },
    180_000,
  )
})

/**
 * Writes a stored value as JSON with the fields of every object in order, so that two texts are equal exactly if their
 * values are.
 */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, inner) {
    // JSON would write a date and its text the same way.
    if (this[key] instanceof Date) return { $date: this[key].getTime() }
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
