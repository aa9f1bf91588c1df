import { expect, it } from 'vitest'
import { newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { createContext, depsOn, Life, ManualClock, principal } from '../../../../test/support/knowledge.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import type { Egress } from '../../../common/egress/egress.ts'
import type { Deps } from '../deps.ts'
import { createCollection } from '../documents/collections.ts'
import { ingestDocument } from '../documents/ingest-document.ts'
import { workOnSources } from './refresh-source.ts'
import { addWebDocument, refreshNow } from './sources.ts'

const index = await openTestIndex()

const { organizationId } = principal
const { signal } = new AbortController()
const REFRESH_SECONDS = 3_600
let sites = 0

/** Adds a page to a collection, with an hourly refresh. */
async function watched() {
  const page = { text: 'The first text.', etag: '"1"', etags: [] as (string | undefined)[], beforeResponse: async () => {} }
  const fetchIt = async ({ url, headers }: { readonly url: string; readonly headers: Record<string, string> }) => {
    if (url.endsWith('/robots.txt')) return { status: 404, headers: {}, body: Buffer.from(''), url }
    const { text, etag } = page
    page.etags.push(headers['if-none-match'])
    await page.beforeResponse()
    if (headers['if-none-match'] === etag) return { status: 304, headers: {}, body: Buffer.from(''), url }
    return { status: 200, headers: { etag }, body: Buffer.from(text), url }
  }
  const clock = new ManualClock()
  // Only these two members are used.
  const egress = { allows: () => true, fetch: fetchIt } as unknown as Egress
  const world = newWorld({ index, clock, egress })
  const deps = depsOn(world)
  const { _id: collectionId } = await createCollection(deps, createContext(), { code: 'c', name: 'C', embeddingModel: 'embed' })
  const url = `https://site-${sites++}.example/page`
  const { document } = await addWebDocument(deps, createContext(), { collectionId, url, refreshSeconds: REFRESH_SECONDS })
  const ingest = async () => {
    const leased = await claimJob(deps.store.documents, clock, document._id)
    if (leased?.job?.kind === 'ingest') await ingestDocument(deps, leased, signal)
  }
  await ingest()
  page.etags.length = 0
  const source = async () => (await deps.store.sources.findOne({ collectionId }))!
  /** Runs workers until nothing is due before the next refresh. */
  const settle = async () => {
    for (;;) {
      const { dueAt, refreshAt } = await source()
      if (dueAt!.getTime() === refreshAt!.getTime() && dueAt!.getTime() > clock.ms) return
      clock.ms = Math.max(clock.ms, dueAt!.getTime(), clock.ms + LEASE_MS + 1)
      await ingest()
      await workOnSources(deps, signal)
      await ingest()
    }
  }
  const change = (text: string, etag: string) => {
    Object.assign(page, { text, etag })
    clock.ms += REFRESH_SECONDS * 1_000
  }
  return { world, deps, page, clock, id: document._id, source, settle, ingest, change }
}

const filesOf = async (deps: Deps) => (await deps.store.files.find({ organizationId }, { limit: 10 })).map(({ _id }) => _id)

it('two workers fetch what is due once, and store its validators', async () => {
  const { world, deps, page, change, settle, source } = await watched()
  for (const [text, etag] of [
    ['The first text.', '"1"'],
    ['The second text.', '"2"'],
  ] as const) {
    const before = (await source()).etag
    change(text, etag)
    await Promise.all([workOnSources(deps, signal), workOnSources(depsOn(world), signal)])
    expect(page.etags).toEqual([before])
    await settle()
    expect(page.etags.splice(0)).toEqual([before])
    expect(await source()).toMatchObject({ etag, error: null, formerFileId: null, refreshAt: expect.any(Date) })
  }
})

it('a worker that dies at any call leaves the refresh to the next, which deletes the former file', async () => {
  for (let call = 1, passed = false; !passed; call++) {
    const { world, deps, id, change, settle, source } = await watched()
    change('The second text.', '"2"')
    const life = new Life(call)
    await workOnSources(depsOn(world, life), signal).catch(() => undefined)
    passed = !life.isDead
    await settle()
    const document = await deps.store.documents.findOne({ _id: id })
    expect(document, `after a death at call ${call}`).toMatchObject({ status: 'ready', version: 2 })
    expect(await source()).toMatchObject({ etag: '"2"', error: null, formerFileId: null })
    expect(await filesOf(deps)).toEqual([document!.fileId])
  }
})

it('a worker paused for longer than its lease overwrites nothing newer', async () => {
  const { world, deps, page, id, clock, change, settle, source, ingest } = await watched()
  change('The second text.', '"2"')
  const reached = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  page.beforeResponse = async () => {
    reached.resolve()
    await goOn.promise
  }
  const slow = workOnSources(depsOn(world), signal)
  await reached.promise
  page.beforeResponse = async () => {}
  clock.ms = (await source()).dueAt!.getTime()
  Object.assign(page, { text: 'The third text.', etag: '"3"' })
  await workOnSources(deps, signal)
  await ingest()
  goOn.resolve()
  await slow
  await settle()
  expect(await source()).toMatchObject({ etag: '"3"', error: null })
  expect(await deps.store.documents.findOne({ _id: id })).toMatchObject({ status: 'ready', version: 2 })
  expect(await filesOf(deps)).toHaveLength(1)
})

it('a refresh on demand takes the URL over from the worker', async () => {
  const { world, deps, page, id, change, settle, source } = await watched()
  change('The second text.', '"2"')
  const work = workOnSources(depsOn(world), signal)
  await refreshNow(deps, createContext(), (await source())._id)
  await work
  await settle()
  expect(page.etags.length).toBeLessThanOrEqual(2)
  expect(await source()).toMatchObject({ etag: '"2"', formerFileId: null })
  expect(await deps.store.documents.findOne({ _id: id })).toMatchObject({ version: 2 })
  expect(await filesOf(deps)).toHaveLength(1)
})

it('a key that may no longer write has nothing fetched, and what it had begun is cleaned up', async () => {
  for (const isBegun of [false, true]) {
    const { world, deps, page, id, clock, change, ingest, source } = await watched()
    const demoted = { ...principal, scopes: ['knowledge:read'] as const }
    const after = depsOn({ ...world, accounts: { findPrincipal: async () => demoted } })
    change('The second text.', '"2"')
    if (isBegun) {
      await workOnSources(deps, signal)
      await ingest()
      clock.ms = (await source()).dueAt!.getTime()
      await workOnSources(after, signal)
      clock.ms = (await source()).dueAt!.getTime()
    }
    page.etags.length = 0
    await workOnSources(after, signal)
    expect(page.etags).toEqual([])
    expect(await source()).toMatchObject({
      error: expect.stringContaining('knowledge:write'),
      errorReason: 'key_ended',
      formerFileId: null,
      refreshAt: null,
    })
    expect((await source()).dueAt).toBeUndefined()
    const document = await deps.store.documents.findOne({ _id: id })
    expect([document?.status, document?.version ?? 1]).toEqual(['ready', isBegun ? 2 : 1])
    expect(await filesOf(deps)).toEqual([document!.fileId])
  }
})
