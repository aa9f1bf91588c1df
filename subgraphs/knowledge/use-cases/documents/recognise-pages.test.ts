import { expect, it } from 'vitest'
import { newWorld, openTestIndex, startWork } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import {
  base64,
  Crash,
  createContext,
  depsOn,
  FakeInference,
  FakePageBilling,
  Life,
  type MemoryBlobStore,
  paragraphs,
  plainParser,
  principal,
} from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { DocumentParser } from '../../ports/document-parser.ts'
import type { PageRecogniser } from '../../ports/page-recogniser.ts'
import type { Deps } from '../deps.ts'
import { uploadFile } from '../files/files.ts'
import { createCollection, updateCollection } from './collections.ts'
import { createDocument, deleteDocument, getDocument, retryDocument } from './documents.ts'
import { recognisePages } from './recognise-pages.ts'

const context = createContext()
const index = await openTestIndex()

/** Parses a text `scan 25` as a scan of 25 pages. */
const scanParser: DocumentParser = {
  ...plainParser,
  async parse(bytes, name, signal, options) {
    const [, pages] = /^scan (\d+)/.exec(Buffer.from(bytes as Uint8Array).toString()) ?? []
    const parsed = await plainParser.parse(bytes, name, signal)
    if (!pages || !options?.defersOcr) return parsed
    return {
      ...parsed,
      text: '',
      blocks: [],
      pageCount: Number(pages),
      unread: Array.from({ length: Number(pages) }, (_, page) => page + 1),
    }
  },
}

/** Recognizes pages as `Page 3`, after `before` allows it. */
class FakeRecogniser implements PageRecogniser {
  readonly read: number[] = []
  before: (page: number, organizationId: string) => Promise<void> | void = () => {}
  async *recognise({ organizationId, pages }: Parameters<PageRecogniser['recognise']>[0], signal: AbortSignal) {
    for (const page of pages) {
      await this.before(page, organizationId)
      signal.throwIfAborted()
      this.read.push(page)
      yield { page, confidence: 90, paragraphs: [`Page ${page} of the harbour.`] }
    }
  }
  async [Symbol.asyncDispose]() {}
}

function newDeps(recogniser: PageRecogniser, pageBilling = new FakePageBilling()): Deps {
  const accounts = { findPrincipal: async (organizationId: string, apiKeyId: string) => ({ ...principal, organizationId, apiKeyId }) }
  return depsOn(newWorld({ index, clock: systemClock, parser: scanParser, recogniser, pageBilling, accounts }))
}

async function attach(deps: Deps, text: string, { ocr = 'auto' as 'auto' | 'off', as = context } = {}) {
  const collection = await createCollection(deps, as, { code: deps.ids('col'), name: 'C', embeddingModel: 'embed', ocr })
  const file = await uploadFile(deps, as, { name: 'a.pdf', contentBase64: base64(text) })
  const { document } = await createDocument(deps, as, { collectionId: collection._id, fileId: file._id })
  return { id: document._id, collectionId: collection._id, organizationId: document.organizationId }
}

const readDocument = (deps: Deps, { id, organizationId }: { readonly id: string; readonly organizationId: string }) =>
  getDocument(deps, organizationId, id)

it('runs OCR where the collection enables it, and shows each page as progress', async () => {
  const recogniser = new FakeRecogniser()
  const deps = newDeps(recogniser)
  const seen: unknown[] = []
  const scan = await attach(deps, 'scan 12')
  recogniser.before = async () => {
    const { status, stage, progress } = await readDocument(deps, scan)
    seen.push([status, stage, progress!.done, progress!.total])
  }
  await using _process = startWork(deps)
  await eventually(async () => (await readDocument(deps, scan)).status === 'ready')
  expect(seen).toEqual(Array.from({ length: 12 }, (_, page) => ['processing', 'parsing', page, 12]))
  const { pageCount, attempts, warnings } = await readDocument(deps, scan)
  expect({ pageCount, attempts, codes: warnings.map(({ code }) => code) }).toEqual({
    pageCount: 12,
    attempts: 1,
    codes: ['pages_read_by_ocr'],
  })
  const off = await attach(deps, `scan 2\n${paragraphs(1)}`, { ocr: 'off' })
  await eventually(async () => (await readDocument(deps, off)).status === 'ready')
  expect((await readDocument(deps, off)).warnings).toEqual([])
})

it('continues after the last ten pages when the process ends', async () => {
  const recogniser = new FakeRecogniser()
  const deps = newDeps(recogniser)
  const scan = await attach(deps, 'scan 25')
  const stopped = Promise.withResolvers<void>()
  recogniser.before = (page) => (page === 15 ? stopped.promise : undefined)
  const first = startWork(deps)
  await eventually(() => recogniser.read.length === 14)
  const ended = first[Symbol.asyncDispose]()
  stopped.resolve()
  await ended
  recogniser.read.length = 0
  await using _second = startWork(deps, true)
  await eventually(async () => (await readDocument(deps, scan)).status === 'ready')
  expect(recogniser.read).toEqual(Array.from({ length: 15 }, (_, index) => index + 11))
})

it('stops after repeated failures, and reports them', async () => {
  const recogniser = new FakeRecogniser()
  const deps = newDeps(recogniser)
  const scan = await attach(deps, 'scan 2')
  recogniser.before = () => {
    throw new Error('the process could not run')
  }
  await using _process = startWork(deps)
  await eventually(async () => (await readDocument(deps, scan)).status === 'failed')
})

it('stops when the document is deleted, stores nothing, and leaves no hold', async () => {
  const recogniser = new FakeRecogniser()
  const pageBilling = new FakePageBilling()
  const deps = newDeps(recogniser, pageBilling)
  const scan = await attach(deps, 'scan 40')
  let isDeleted = false
  recogniser.before = async (page) => {
    if (page === 12) {
      await deleteDocument(deps, context, scan.id)
      isDeleted = true
    }
  }
  await using _process = startWork(deps)
  await eventually(() => isDeleted)
  await eventually(async () => (await deps.store.documents.findOne({ _id: scan.id })) === null)
  expect(recogniser.read.length).toBeLessThan(14)
  expect([...(deps.blobs as MemoryBlobStore).keys.keys()].filter((key) => key.includes(scan.id))).toEqual([])
  await eventually(() => [...pageBilling.holds.values()].every(({ state }) => state !== 'open'))
  expect([pageBilling.charged, pageBilling.used]).toEqual([10, 10])
})

it('releases the hold of pages that OCR could not read, and places one again for a retry', async () => {
  const recogniser = new FakeRecogniser()
  const pageBilling = new FakePageBilling()
  const deps = newDeps(recogniser, pageBilling)
  let isBroken = true
  recogniser.before = (page) => {
    if (page === 3 && isBroken) throw new Error('the process could not run')
  }
  const source = { _id: 'doc_1', organizationId: 'org_1', fileId: 'file_1' }
  const read = async () => {
    const parsed = await scanParser.parse(Buffer.from('scan 5'), 'scan.txt', context.signal, { defersOcr: true })
    const now = async () => ({ caller: principal, requestId: 'doc_1', signal: context.signal })
    return recognisePages(deps, source, { file: new Uint8Array(), parsed }, async () => undefined, now, context.signal)
  }
  await expect(read()).rejects.toThrow('could not run')
  expect([pageBilling.charged, pageBilling.used]).toEqual([0, 0])
  isBroken = false
  await read()
  expect([pageBilling.charged, pageBilling.used]).toEqual([5, 5])
})

it('leaves slots to documents that need no OCR, of any organization', async () => {
  const recogniser = new FakeRecogniser()
  const deps = newDeps(recogniser)
  const released = Promise.withResolvers<void>()
  recogniser.before = () => released.promise
  const scans: Awaited<ReturnType<typeof attach>>[] = []
  for (const organizationId of ['org_1', 'org_2', 'org_3']) {
    const as = createContext({ ...principal, organizationId })
    for (let i = 0; i < 6; i++) scans.push(await attach(deps, `scan 3 ${organizationId} ${i}`, { as }))
  }
  await using _process = startWork(deps)
  await eventually(async () => {
    const stored = await Promise.all(scans.map((scan) => readDocument(deps, scan)))
    return stored.every(({ job }) => job!.slowOrganizationId !== undefined)
  })
  for (const organizationId of ['org_1', 'org_4']) {
    const plain = await attach(deps, paragraphs(1, organizationId), { as: createContext({ ...principal, organizationId }) })
    await eventually(async () => (await readDocument(deps, plain)).status === 'ready')
  }
  released.resolve()
  await eventually(async () => (await Promise.all(scans.map((scan) => readDocument(deps, scan)))).every(({ status }) => status === 'ready'))
}, 30_000)

it('refuses to attach an image to a collection without OCR, and accepts it once OCR is enabled', async () => {
  const deps = { ...newDeps(new FakeRecogniser()), parser: { ...scanParser, sniff: () => 'image/png' } }
  const collection = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, context, { name: 'a.png', contentBase64: base64('scan 1') })
  const input = { collectionId: collection._id, fileId: file._id }
  await expect(createDocument(deps, context, input)).rejects.toMatchObject({ code: 'unsupported_file_type', param: 'input.fileId' })
  expect((await updateCollection(deps, context, { id: collection._id, ocr: 'auto' })).ocr).toBe('auto')
  expect((await createDocument(deps, context, input)).outcome).toBe('created')
})

it('a retry reads a failed scan once OCR is enabled', async () => {
  const parser: DocumentParser = {
    ...scanParser,
    async parse(bytes, name, signal, options) {
      if (options?.defersOcr) return scanParser.parse(bytes, name, signal, options)
      return plainParser.parse(Buffer.from('%corrupt'), name, signal)
    },
  }
  const deps = { ...newDeps(new FakeRecogniser()), parser }
  const scan = await attach(deps, 'scan 2', { ocr: 'off' })
  await using _process = startWork(deps)
  await eventually(async () => (await readDocument(deps, scan)).status === 'failed')
  await updateCollection(deps, context, { id: scan.collectionId, ocr: 'auto' })
  await retryDocument(deps, context, scan.id)
  await eventually(async () => (await readDocument(deps, scan)).status === 'ready')
})

it('charges each page once that was read or stopped by a limit, wherever the process dies', async () => {
  const parsed = await scanParser.parse(Buffer.from('scan 13'), 'a.pdf', context.signal, { defersOcr: true })
  const recogniser = {
    async *recognise({ pages }: Parameters<PageRecogniser['recognise']>[0]) {
      for (const page of pages) {
        const failed = { page, confidence: null, paragraphs: [] }
        if (page === 3) yield failed
        else if (page === 5) yield { ...failed, isOutOfTime: true as const }
        else if (page === 11) yield { ...failed, isOutOfMemory: true as const }
        else yield { page, confidence: 90, paragraphs: [`Page ${page}`] }
      }
    },
    async [Symbol.asyncDispose]() {},
  }
  for (const effect of ['failed', 'lost answer'] as const)
    for (const expires of [false, true])
      for (let diesAt = 1, isDead = true; isDead; diesAt++) {
        const pageBilling = new FakePageBilling()
        const world = { ...newDeps(recogniser, pageBilling), documents: new MemoryDocumentStore(), pageBilling }
        const read = (life: Life) => {
          const deps = depsOn(world, life)
          const source = { _id: 'doc_1', organizationId: 'org_1', fileId: 'file_1' }
          const file = { file: new Uint8Array(), parsed }
          const now = async () => ({ caller: principal, requestId: 'doc_1', signal: context.signal })
          return recognisePages(deps, source, file, async () => undefined, now, context.signal)
        }
        const life = new Life(diesAt, effect)
        await read(life).catch((error) => expect(error).toBeInstanceOf(Crash))
        isDead = life.isDead
        if (expires) pageBilling.expireHolds()
        for (let attempt = 0; attempt < 2; attempt++) await read(new Life())
        pageBilling.expireHolds()
        expect([diesAt, pageBilling.charged, pageBilling.used]).toEqual([diesAt, 12, 12])
      }
})

it('fails a document above the quota, charges the pages that were read, and continues after them on a retry', async () => {
  const recogniser = new FakeRecogniser()
  const pageBilling = new FakePageBilling()
  const deps = newDeps(recogniser, pageBilling)
  pageBilling.quota = 22
  const scan = await attach(deps, 'scan 25')
  await using _process = startWork(deps)
  await eventually(async () => (await readDocument(deps, scan)).status === 'failed')
  expect((await readDocument(deps, scan)).error).toMatchObject({ code: 'insufficient_quota', message: 'The plan allows no more pages.' })
  expect(pageBilling.charged).toBe(20)
  pageBilling.quota = 25
  recogniser.read.length = 0
  await retryDocument(deps, context, scan.id)
  await eventually(async () => (await readDocument(deps, scan)).status === 'ready')
  expect(recogniser.read).toEqual([21, 22, 23, 24, 25])
  expect([pageBilling.charged, pageBilling.used]).toEqual([25, 25])
})

it('charges no page again after a failure of the embedding', async () => {
  const recogniser = new FakeRecogniser()
  const pageBilling = new FakePageBilling()
  const inference = new FakeInference()
  const deps = { ...newDeps(recogniser, pageBilling), inference }
  inference.balance = 0
  const scan = await attach(deps, 'scan 12')
  await using _process = startWork(deps)
  await eventually(async () => (await readDocument(deps, scan)).status === 'failed')
  expect((await readDocument(deps, scan)).error).toMatchObject({ code: 'insufficient_quota' })
  inference.balance = 1_000_000
  await retryDocument(deps, context, scan.id)
  await eventually(async () => (await readDocument(deps, scan)).status === 'ready')
  expect([recogniser.read.length, pageBilling.charged]).toEqual([12, 12])
})
