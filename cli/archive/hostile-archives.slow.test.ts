import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { readConfig } from '../settings/config.ts'
import { readStoreLocations } from '../settings/servers.ts'
import { ArchiveReader } from './archive-reader.ts'
import { FORMAT, HEAD, MANIFEST } from './format.ts'
import { importOrganization } from './import-organization.ts'

const hex = (digit: string) => digit.repeat(32)
const ORGANIZATION = { name: 'Evil', residencyPolicy: 'unrestricted', plan: 'self-hosted', createdAt: '2026-01-01T00:00:00.000Z' }
const AT = '2026-01-01T00:00:00.000Z'
const SHA = createHash('sha256').update('abc').digest('hex')
const COLLECTION = {
  _id: `col_${hex('1')}`,
  code: 'c',
  name: 'C',
  description: null,
  embeddingModel: 'e5-small-ar-en',
  dimensions: 384,
  createdAt: AT,
}
const FILE = { _id: `file_${hex('2')}`, name: 'a.txt', mediaType: 'text/plain', sha256: SHA, sizeBytes: 3, attachments: {}, createdAt: AT }
/** A source of another collection, with a file of the first organization. */
const SOURCE = {
  ...{ _id: `web_${hex('5')}`, collectionId: `col_${hex('a')}`, sourceKey: `col_${hex('a')}_u`, apiKeyId: `key_${hex('3')}` },
  ...{ url: 'https://u.test/', metadata: {}, documentId: null, formerFileId: FILE._id, etag: null, lastModified: null, sha256: null },
  ...{ refreshSeconds: 900, refreshAt: null, checkedAt: null, changedAt: null, error: null, createdAt: AT },
}
const KEY = { _id: `key_${hex('3')}`, name: 'k', scopes: ['admin'], modelAllowlist: null, expiresAt: null, revokedAt: null, createdAt: AT }
const DOCUMENT = {
  ...{ _id: `doc_${hex('4')}`, collectionId: COLLECTION._id, fileId: FILE._id, apiKeyId: KEY._id, fileName: 'a.txt', metadata: {} },
  ...{ status: 'ready', error: null, warnings: [], pageCount: null, chunkCount: 1, language: 'en', attempts: 0, liveGeneration: 'g1' },
  ...{ generation: 1, createdAt: AT },
}
const CHUNK = {
  ...{ ordinal: 0, text: 't', headingPath: [], pageStart: null, pageEnd: null, charStart: 0, charEnd: 1, language: 'en', context: '' },
  ...{ vector: Buffer.alloc(4 * 384).toString('base64'), tokenStates: null },
}
const CHUNK_GROUP = { documentId: DOCUMENT._id, attributes: {}, passages: [CHUNK] }

/** An entry: records of a kind, or bytes. */
type Entry = readonly [path: string, content: readonly unknown[] | Uint8Array]

let folder: string
let count = 0
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-hostile-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Creates an archive with these entries, whose counts and checksum are right unless `manifest` says otherwise. */
async function archiveOf(
  entries: readonly Entry[],
  { head = {}, manifest = {} }: { head?: object; manifest?: object } = {},
): Promise<string> {
  const file = join(folder, `archive-${++count}`)
  const tar = pack()
  const hash = createHash('sha256')
  const add = (name: string, bytes: Uint8Array) => {
    hash.update(`${name} ${bytes.length}\n`).update(bytes)
    tar.entry({ name, size: bytes.length }, Buffer.from(bytes))
  }
  const described = {
    ...{ what: 'kis-archive', format: FORMAT, id: `exp_${hex('a')}`, ...VERSIONS, begunAt: AT, secret: null },
    scope: { what: 'organization', id: `org_${hex('b')}`, name: 'Evil', models: [] },
  }
  add(HEAD, Buffer.from(JSON.stringify({ ...described, ...head })))
  const records: Record<string, number> = {}
  const files = { count: 0, bytes: 0 }
  for (const [path, content] of entries) {
    if (content instanceof Uint8Array) {
      files.count++
      files.bytes += content.length
      add(path, content)
    } else {
      records[path] = (records[path] ?? 0) + content.length
      const lines = content.map((record) => `${JSON.stringify(record)}\n`).join('')
      add(`records/${path}/${String(++count).padStart(8, '0')}.jsonl`, Buffer.from(lines))
    }
  }
  const ended = { from: AT, to: AT, records, files, left: {}, sha256: hash.copy().digest('hex'), ...manifest }
  add(MANIFEST, Buffer.from(JSON.stringify(ended)))
  tar.finalize()
  writeFileSync(file, zstdCompressSync(await buffer(tar)))
  return file
}

const environment = () => ({ KIS_DATA_DIR: join(folder, 'data') })
const importing = async (file: string) => {
  const archive = await ArchiveReader.open(file)
  const { scope } = archive.head
  if (scope.what !== 'organization') throw new Error('is of an installation')
  const target = { config: readConfig(environment()), locations: readStoreLocations(environment()).locations }
  return importOrganization({ ...target, archive, scope, as: null, check: false, passphrase: async () => '', log: silentLog })
}

/** Changes a tar so that its first entry is a link. */
function linked(tar: Buffer): Uint8Array {
  return withChecksum(Buffer.from(tar.with(156, '2'.charCodeAt(0))))
}

/** Creates the header of a name of a gigabyte. */
function longHeader(): Buffer {
  const header = Buffer.alloc(512)
  header.write('././@LongLink')
  header.write('10000000000 ', 124)
  header.write('L', 156)
  header.write('ustar\u000000', 257)
  return withChecksum(header)
}

function withChecksum(tar: Buffer): Buffer {
  tar.fill(' ', 148, 156)
  const sum = tar.subarray(0, 512).reduce((all, byte) => all + byte, 0)
  tar.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148)
  return tar
}

const FIRST: Entry = ['billing/organization', [ORGANIZATION]]

it('an archive with a corrupted byte anywhere is refused before anything is written', async () => {
  const valid = await archiveOf([FIRST, ['billing/api-keys', [KEY]]])
  const bytes = readFileSync(valid)
  const changed = (name: string, change: (copy: Buffer) => Uint8Array) => {
    const file = join(folder, name)
    writeFileSync(file, change(Buffer.from(bytes)))
    return file
  }
  const flipped = (at: number) =>
    changed(`flipped-${at}`, (copy) => {
      copy[at]! ^= 1
      return copy
    })
  const bomb: Entry = ['records/billing/api-keys/00000009.jsonl', Buffer.alloc(80 * 1024 * 1024, 10)]
  const many: Entry = ['records/billing/api-keys/00000009.jsonl', Buffer.alloc(8 * 1024 * 1024, '{}\n')]
  const plain = zstdDecompressSync(bytes)
  const repacked = (name: string, change: (copy: Buffer) => Uint8Array) => changed(name, () => zstdCompressSync(change(Buffer.from(plain))))
  for (const [file, problem] of [
    [changed('cut', (copy) => copy.subarray(0, copy.length - 3_000)), /is not complete|is corrupted/],
    [changed('text', () => Buffer.alloc(2_000, 'a')), /is corrupted/],
    [changed('none', () => Buffer.alloc(0)), /is not complete/],
    [flipped(70), /corrupted|is invalid|is not/],
    [flipped(200), /corrupted|is not/],
    [flipped(bytes.length - 50), /corrupted|is not/],
    [repacked('bit', (copy) => copy.with(540, copy[540]! ^ 1)), /is invalid|corrupted|is not an archive/],
    [repacked('short', (copy) => copy.subarray(0, 2_048)), /is not complete/],
    [repacked('long', (copy) => Buffer.concat([copy.subarray(0, -1_024), copy])), /data after its end/],
    [repacked('link', (copy) => linked(copy)), /has an entry/],
    [repacked('pax', (copy) => Buffer.concat([longHeader(), Buffer.alloc(9 * 1024 * 1024, 'a'), copy])), /data that is not an entry/],
    [archiveOf([FIRST], { manifest: { sha256: hex('0') + hex('0') } }), /SHA-256 differs from/],
    [archiveOf([FIRST], { manifest: { records: { 'billing/organization': 2 } } }), /counts of .* differ from/],
    [archiveOf([FIRST, ['../../etc/passwd', Buffer.from('x')]]), /has an entry/],
    [archiveOf([FIRST, ['files/../x', Buffer.from('x')]]), /has an entry/],
    [archiveOf([FIRST, bomb]), /is too large/],
    [archiveOf([FIRST, many]), /too many lines/],
    [archiveOf([FIRST], { head: { format: FORMAT + 1 } }), /reads formats up to/],
    [archiveOf([FIRST], { head: { version: '999.0.0' } }), /was created by version 999/],
    [archiveOf([]), /does not begin with one organization/],
    [archiveOf([FIRST, FIRST]), /does not begin with one organization/],
    [archiveOf([['billing/organization', [ORGANIZATION, ORGANIZATION]]]), /does not begin with one organization/],
    [archiveOf([FIRST, ['billing/wallets', [{}]]]), /records of the unknown kind/],
    [archiveOf([FIRST, ['billing/api-keys', [{ ...KEY, scopes: ['operator'] }]]]), /scopes/],
    [archiveOf([FIRST, ['billing/api-keys', [{ ...KEY, digest: 'x' }]]]), /digest/],
    [archiveOf([FIRST, ['billing/api-keys', [{ ...KEY, name: 'x'.repeat(5_000) }]]]), /name/],
    [archiveOf([FIRST, ['knowledge/passages', [{ ...CHUNK_GROUP, attributes: { title: 'x'.repeat(40_000) } }]]]), /title/],
    [archiveOf([['billing/organization', [{ ...ORGANIZATION, plan: 'gold' }]]]), /has the plan "gold"/],
    [
      archiveOf([FIRST, ['knowledge/collections', [{ ...COLLECTION, embeddingModel: 'other' }]]]),
      /embedding model other, which the catalog/,
    ],
    [archiveOf([FIRST, ['knowledge/collections', [{ ...COLLECTION, dimensions: 8 }]]]), /is another model here/],
  ] as const)
    await expect(importing(await file), String(problem)).rejects.toThrow(problem)
  // The organization does not exist, so the import of the valid archive starts anew.
  expect(await importing(valid)).toMatchObject({ wasDone: false, key: expect.stringMatching(/^kis_live_/) })
}, 120_000)

it('references to other organizations are refused', async () => {
  const own = await archiveOf([FIRST, ['billing/api-keys', [KEY]], ['knowledge/collections', [COLLECTION]], ['knowledge/files', [FILE]]])
  await importing(own)
  const scopeOf = (id: string) => ({ what: 'organization', id: `org_${id}`, name: 'Evil', models: [] })
  const evil = { head: { id: `exp_${hex('c')}`, scope: scopeOf(hex('d')) } }
  const id = (record: { readonly _id: string }, digit: string) => ({ ...record, _id: record._id.replace(/.{32}$/, hex(digit)) })
  const collection = id({ ...COLLECTION, code: 'd' } as never, '7') as unknown as typeof COLLECTION
  const document = { ...DOCUMENT, collectionId: collection._id }
  const question = { _id: `gq_${hex('8')}`, collectionId: COLLECTION._id, query: 'q', expected: [], createdAt: AT }
  const event = { _id: `run_${hex('9')}_1`, runId: `run_${hex('9')}`, sequence: 1, at: AT, event: '{"type":"done"}' }
  for (const [entries, problem] of [
    [[['knowledge/collections', [COLLECTION]]], /already exists here, in org_b/],
    [[['billing/api-keys', [KEY]]], /already exists here, in org_b/],
  ] as const)
    await expect(importing(await archiveOf([FIRST, ...(entries as unknown as Entry[])], evil))).rejects.toThrow(problem)
  let next = 0
  for (const [entries, problem] of [
    [[['knowledge/gold-questions', [question]]], /has records of col_1/],
    [[['inference/run-events', [event]]], /has records of run_9/],
    [
      [
        ['knowledge/collections', [collection]],
        ['knowledge/documents', [document]],
      ],
      /file_2.* already exists here/,
    ],
    [[['knowledge/documents', [{ ...DOCUMENT, fileId: `file_${hex('6')}` }]]], /has records of col_1/],
    [
      [
        ['knowledge/collections', [id(collection, 'e')]],
        ['knowledge/documents', [{ ...document, attachKey: COLLECTION._id }]],
      ],
      /key of another/,
    ],
    [[['files/'.concat(SHA), Buffer.from('abc')]], /no file has the bytes/],
    [
      [
        ['knowledge/collections', [id(collection, 'a')]],
        ['knowledge/web-sources', [SOURCE]],
      ],
      /file_2.* already exists here/,
    ],
    [
      [
        ['knowledge/collections', [id(collection, 'f')]],
        ['knowledge/documents', [{ ...DOCUMENT, collectionId: `col_${hex('f')}`, fileId: `file_${hex('6')}` }]],
        ['knowledge/passages', [CHUNK_GROUP]],
      ],
      /a wrong vector/,
    ],
  ] as const) {
    const as = { head: { ...evil.head, scope: scopeOf(String(++next).padStart(32, '0')) } }
    await expect(importing(await archiveOf([FIRST, ...(entries as unknown as Entry[])], as)), String(problem)).rejects.toThrow(problem)
  }
}, 120_000)
