import { afterAll, expect, it } from 'vitest'
import { newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { writeZip, type ZipEntry } from '../../../../test/support/data/zip-file.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { createContext, depsOn, Life, ManualClock, principal } from '../../../../test/support/knowledge.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { silentLog } from '../../../common/process/log.ts'
import { wakeUp } from '../../../common/process/wake-up.ts'
import { openDocumentParser } from '../../adapters/parser/open-document-parser.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { uploadFile } from '../files/files.ts'
import { work } from '../jobs/work.ts'
import { createCollection } from './collections.ts'
import { createDocument, deleteDocument } from './documents.ts'
import { ingestDocument } from './ingest-document.ts'

const context = createContext()
/** Each file has its own process, which takes seconds to start on a slow machine. */
const SOON_MS = 60_000
const TIMEOUT_MS = 2 * SOON_MS + 30_000
const index = await openTestIndex()
const parser = await openDocumentParser({ log: silentLog })
afterAll(() => parser[Symbol.asyncDispose]())

type World = Parameters<typeof depsOn>[0]
const STORES = { index, clock: systemClock }
const open = (world: World, life = new Life()): Deps => ({ ...depsOn(world, life), parser })

async function attach(deps: Deps, name: string, bytes: Buffer) {
  const collection = await createCollection(deps, context, { code: deps.ids('col'), name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, context, { name, contentBase64: bytes.toString('base64') })
  const input = { collectionId: collection._id, fileId: file._id, metadata: { year: 2026 } }
  const { document } = await createDocument(deps, context, input)
  return { id: document._id, collectionId: collection._id, fileId: file._id }
}

function startWork(deps: Deps) {
  const waking = wakeUp()
  const stopping = new AbortController()
  const working = work(deps, waking, { exclusive: true, backoffMs: 1 }, stopping.signal)
  const impatience = setInterval(waking.wake, 5)
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('the service stops'))
      await working
      clearInterval(impatience)
    },
  }
}

const documentsOf = async (deps: Deps, collectionId: string): Promise<readonly DocumentRecord[]> =>
  deps.store.documents.find({ collectionId, listed: true }, { limit: 100, sort: { _id: 1 } })
const areReady = async (deps: Deps, collectionId: string, count: number) => {
  const documents = await documentsOf(deps, collectionId)
  return documents.length === count && documents.every(({ status }) => status === 'ready')
}

const entry = (name: string, content: string | Buffer): ZipEntry => ({ name, content: Buffer.from(content) })
const ARCHIVE = writeZip([
  entry('letters/one.txt', 'The harbour of Sur was rebuilt.'),
  entry('two.md', '# Kilns\n\nA kiln for bricks.'),
  entry('letters/two.md', '# Kilns\n\nAnother kiln.'),
  entry('data.bin', Buffer.from([0, 1, 2, 3])),
  entry('inner.zip', writeZip([entry('deep.txt', 'deep')])),
])

it('creates a document from each readable file of an archive, and names the others', { timeout: TIMEOUT_MS }, async () => {
  const deps = open(newWorld(STORES))
  const { id, collectionId } = await attach(deps, 'a.zip', ARCHIVE)
  await using _process = startWork(deps)
  await eventually(() => areReady(deps, collectionId, 4), SOON_MS)
  const [archive, ...parts] = await documentsOf(deps, collectionId)
  expect(archive).toMatchObject({ _id: id, chunkCount: 1, warnings: [{ code: 'files_not_read' }] })
  expect(archive!.warnings[0]!.message).toContain('2 files inside were not read: data.bin, inner.zip.')
  expect(parts.map(({ fileName }) => fileName)).toEqual(['one.txt', 'two.md', 'two.md'])
  for (const part of parts) expect(part).toMatchObject({ parentId: id, metadata: { year: 2026 } })
})

it('creates one document from files with the same bytes, and stores one file', { timeout: TIMEOUT_MS }, async () => {
  const deps = open(newWorld(STORES))
  const { collectionId } = await attach(deps, 'a.zip', writeZip([entry('one.txt', 'The same.'), entry('two.txt', 'The same.')]))
  await using _process = startWork(deps)
  await eventually(() => areReady(deps, collectionId, 2), SOON_MS)
  const files = await deps.store.files.find({ organizationId: principal.organizationId }, { limit: 10 })
  expect(files.map(({ name }) => name).sort()).toEqual(['a.zip', 'one.txt'])
})

it('does not become a version of a document, whose live version remains', { timeout: TIMEOUT_MS }, async () => {
  const deps = open(newWorld(STORES))
  const { id, collectionId } = await attach(deps, 'a.txt', Buffer.from('The harbour of Sur.'))
  await using _process = startWork(deps)
  await eventually(() => areReady(deps, collectionId, 1), SOON_MS)
  const file = await uploadFile(deps, context, { name: 'a.txt', contentBase64: ARCHIVE.toString('base64') })
  const { outcome } = await createDocument(deps, context, { collectionId, fileId: file._id, onConflict: 'replace' })
  expect(outcome).toBe('replacing')
  await eventually(async () => (await documentsOf(deps, collectionId))[0]!.replacement?.status === 'failed', SOON_MS)
  const [document, ...parts] = await documentsOf(deps, collectionId)
  expect(parts).toEqual([])
  expect(document).toMatchObject({ _id: id, status: 'ready', chunkCount: 1, replacement: { error: { code: 'unsupported_type' } } })
})

it('reads messages attached to messages, and their attachments', { timeout: TIMEOUT_MS }, async () => {
  const deps = open(newWorld(STORES))
  const mail = (subject: string, attachments: Readonly<Record<string, string>>) =>
    `From: a@b.c\r\nTo: d@e.f\r\nSubject: ${subject}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=${subject}\r\n\r\n--${subject}\r\nContent-Type: text/plain\r\n\r\nBody of ${subject}.\r\n${Object.entries(
      attachments,
    )
      .map(
        ([name, text]) =>
          `--${subject}\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(text).toString('base64')}\r\n`,
      )
      .join('')}--${subject}--\r\n`
  const core = mail('four', { 'too-deep.txt': 'Nobody reads this.' })
  const third = mail('three', { 'four.eml': core })
  const first = mail('one', { 'two.eml': mail('two', { 'three.eml': third, 'note.txt': 'A note on kilns.' }) })
  const { collectionId } = await attach(deps, 'one.eml', Buffer.from(first))
  await using _process = startWork(deps)
  await eventually(() => areReady(deps, collectionId, 5), SOON_MS)
  const documents = await documentsOf(deps, collectionId)
  expect(documents.map(({ fileName, depth = 0 }) => `${depth} ${fileName}`).sort()).toEqual([
    '0 one.eml',
    '1 two.eml',
    '2 note.txt',
    '2 three.eml',
    '3 four.eml',
  ])
})

it('creates each document once, at whatever point the process dies', { timeout: 2 * TIMEOUT_MS }, async () => {
  const clock = new ManualClock()
  const world = { ...newWorld(STORES), clock }
  const { id, collectionId } = await attach(open(world), 'a.zip', ARCHIVE)
  let deaths = 0
  for (let diesAt = 10; (await open(world).store.documents.findOne({ _id: id }))!.status !== 'ready'; diesAt += 5) {
    const deps = open(world, new Life(diesAt, diesAt % 4 === 0 ? 'lost answer' : 'failed'))
    const leased = await claimJob(deps.store.documents, clock, id)
    await ingestDocument(deps, leased!, context.signal).catch(() => {
      deaths += 1
    })
    // The test, not the document, caused the deaths.
    await open(world).store.documents.findOneAndUpdate({ _id: id, 'job.starts': { $gte: 1 } }, { $set: { 'job.starts': 0 } })
    clock.ms += LEASE_MS + 1
  }
  expect(deaths).toBeGreaterThan(3)
  const deps = open(world)
  for (const { _id } of await documentsOf(deps, collectionId)) {
    const leased = await claimJob(deps.store.documents, clock, _id)
    if (leased) await ingestDocument(deps, leased, context.signal)
  }
  expect(await areReady(deps, collectionId, 4)).toBe(true)
  expect((await deps.store.files.find({}, { limit: 100 })).length).toBe(4)
})

it('deletes them and their files with the archive', { timeout: TIMEOUT_MS }, async () => {
  const deps = open(newWorld(STORES))
  const { id, collectionId, fileId } = await attach(deps, 'a.zip', ARCHIVE)
  await using _process = startWork(deps)
  await eventually(() => areReady(deps, collectionId, 4), SOON_MS)
  const [, part] = await documentsOf(deps, collectionId)
  await deleteDocument(deps, context, part!._id)
  expect(await deps.store.files.findOne({ _id: part!.fileId })).toBeNull()
  await deleteDocument(deps, context, id)
  await eventually(async () => (await deps.store.documents.find({ collectionId, listed: false }, { limit: 10 })).length === 0)
  expect(await documentsOf(deps, collectionId)).toEqual([])
  expect((await deps.store.files.find({}, { limit: 10 })).map(({ _id }) => _id)).toEqual([fileId])
  const { vectors, storageBytes } = await readUsage(deps.store, principal.organizationId)
  expect({ vectors, storageBytes }).toEqual({ vectors: 0, storageBytes: ARCHIVE.length })
})
