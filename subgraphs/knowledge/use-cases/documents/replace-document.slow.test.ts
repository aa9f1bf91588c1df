import { expect, it } from 'vitest'
import { attach, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { Crash, createContext, depsOn, Life, paragraphs, principal } from '../../../../test/support/knowledge.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import { SiftBudget } from '../../../common/documents/lists.ts'
import { MAX_VERSIONS } from '../../domain/records.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deleteFile } from '../files/files.ts'
import { searchCollection } from '../search/search-collection.ts'
import { createCollection } from './collections.ts'
import { createDocument, type DocumentInput, deleteDocument, getDocument, listDocuments, retryDocument } from './documents.ts'
import { ingestDocument } from './ingest-document.ts'
import { LeaseLost } from './lease-lost.ts'
import { tidyDocument } from './settle-document.ts'
import { findSimilar } from './similar-documents.ts'
import { updateDocument } from './update-document.ts'

const context = createContext()
const { organizationId } = principal
const index = await openTestIndex()

const replace = (deps: Deps, collectionId: string, name: string, text: string, more: Partial<DocumentInput> = {}) =>
  attach(deps, collectionId, name, text, { onConflict: 'replace', ...more })

/** Runs one worker once. */
async function work(deps: Deps, id: string): Promise<void> {
  const leased = await claimJob(deps.store.documents, deps.clock, id)
  if (!leased) return
  if (leased.job!.kind === 'tidy') await tidyDocument(deps, leased)
  else await ingestDocument(deps, leased, context.signal)
}

async function addReady(deps: Deps, collectionId: string, name: string, text: string): Promise<string> {
  const { document } = await attach(deps, collectionId, name, text)
  await work(deps, document._id)
  return document._id
}

/** Returns the first words of the texts that a search finds. */
async function find(deps: Deps, collectionId: string, query: string): Promise<readonly string[]> {
  const { hits } = await searchCollection(deps, context, { collectionId, query, limit: 50, mode: 'hybrid', filter: null })
  return [...new Set(hits.map(({ chunk }) => /^[a-z]+/i.exec(chunk.text)![0]))].sort()
}

const OLD = paragraphs(18, 'old')
const NEW = paragraphs(20, 'new')

it('the same bytes are one document of a collection, under any file name', async () => {
  const deps = depsOn(newWorld({ index }))
  const [one, other] = [
    await newCollection(deps),
    (await createCollection(deps, context, { code: 'o', name: 'O', embeddingModel: 'embed' }))._id,
  ]
  const first = await attach(deps, one, 'a.txt', 'The harbour.')
  expect(await attach(deps, one, 'b.txt', 'The harbour.')).toMatchObject({ outcome: 'unchanged', document: { _id: first.document._id } })
  expect(await attach(deps, other, 'a.txt', 'The harbour.')).toMatchObject({ outcome: 'created' })
  await deleteDocument(deps, context, first.document._id)
  expect(await attach(deps, one, 'b.txt', 'The harbour.')).toMatchObject({ outcome: 'created' })
})

it('a document that an earlier version attached is found by its file', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const { document, fileId } = await attach(deps, collectionId, 'a.txt', 'The harbour.')
  await deps.store.documents.findOneAndUpdate({ _id: document._id }, { $set: { attachKey: `${collectionId}_${fileId}` } })
  expect(await createDocument(deps, context, { collectionId, fileId })).toMatchObject({ outcome: 'unchanged' })
})

it('a search during the replacement finds one version at each call, and then the new one', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'plan.txt', OLD)
  const before = await readUsage(deps.store, organizationId)
  const { document, outcome, fileId } = await replace(deps, collectionId, 'plan.txt', NEW, { metadata: { year: 2 } })
  expect([outcome, document._id, document.status, document.replacement?.status]).toEqual(['replacing', id, 'ready', 'queued'])
  const seen: string[] = []
  const life = new Life()
  life.onCall = async () => {
    const found = await find(deps, collectionId, 'old0x0 new0x0 old7x1 new7x1')
    expect(found).toHaveLength(1)
    seen.push(found[0]!)
  }
  await work(depsOn(world, life), id)
  expect(seen[0]).toBe('old')
  expect(seen.at(-1)).toBe('new')
  expect(seen.lastIndexOf('old')).toBeLessThan(seen.indexOf('new'))
  const after = await getDocument(deps, organizationId, id)
  expect(after).toMatchObject({ fileId, version: 2, chunkCount: 20, replacement: null, metadata: { year: 2 }, status: 'ready' })
  expect(after.versions).toMatchObject([{ version: 1, fileName: 'plan.txt' }])
  expect(after.job).toBeUndefined()
  expect(before.vectors).toBe(18)
  expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 20, chunks: { [collectionId]: 20 }, marks: {} })
  // The file of the previous version can be deleted now.
  await deleteFile(deps, context, after.versions![0]!.fileId)
})

it('a version with more and better chunks than a search considers does not hide the live one before the swap', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'plan.txt', `old harbour dues ${'of another matter '.repeat(30)}`)
  const better = Array.from({ length: 130 }, (_, i) => `new${i} ${'harbour dues '.repeat(64)}`).join('\n\n')
  await replace(deps, collectionId, 'plan.txt', better)
  const seen: string[] = []
  const life = new Life()
  life.onCall = async (_call, name) => {
    if (name === 'bytes.put') seen.push((await find(deps, collectionId, 'harbour dues')).join())
  }
  await work(depsOn(world, life), id)
  expect(new Set(seen)).toEqual(new Set(['old']))
  expect(await find(deps, collectionId, 'harbour dues')).toEqual(['new'])
})

/** Runs searches with a swap between any two of their calls. */
it('a swap at any call of a search leaves it with one version', async () => {
  for (let call = 1; ; call++) {
    const world = newWorld({ index })
    const deps = depsOn(world)
    const collectionId = await newCollection(deps)
    const id = await addReady(deps, collectionId, 'plan.txt', 'old harbour dues')
    await replace(deps, collectionId, 'plan.txt', 'new harbour dues')
    const life = new Life()
    let isOver = true
    life.onCall = async (at) => {
      if (at !== call) return
      isOver = false
      await work(deps, id)
    }
    expect(await find(depsOn(world, life), collectionId, 'harbour dues')).toHaveLength(1)
    if (isOver) return
  }
})

it('a replacement that dies at any call is finished by the next worker, and searches find one version throughout', {
  timeout: 60_000,
}, async () => {
  for (let call = 1; ; call++) {
    const world = newWorld({ index })
    const deps = depsOn(world)
    const collectionId = await newCollection(deps)
    const id = await addReady(deps, collectionId, 'plan.txt', 'old harbour dues')
    const { fileId: former } = await getDocument(deps, organizationId, id)
    const life = new Life(call, call % 2 ? 'failed' : 'lost answer')
    const dying = depsOn(world, life)
    await replace(dying, collectionId, 'plan.txt', 'new harbour dues')
      .then(() => work(dying, id))
      .catch((error) => expect(error).toBeInstanceOf(Crash))
    expect(await find(deps, collectionId, 'harbour dues')).toHaveLength(1)
    world.clock.ms += LEASE_MS + 1
    await replace(deps, collectionId, 'plan.txt', 'new harbour dues')
    for (let attempt = 0; attempt < 3; attempt++) {
      world.clock.ms += LEASE_MS + 1
      await work(deps, id)
    }
    expect(await find(deps, collectionId, 'harbour dues')).toEqual(['new'])
    const document = await getDocument(deps, organizationId, id)
    expect(document).toMatchObject({ version: 2, status: 'ready', embedding: null, replacement: null })
    expect(document.job).toBeUndefined()
    expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 1, chunks: { [collectionId]: 1 }, marks: {} })
    expect((await index.listGenerations(collectionId, '', 10)).map(({ generation }) => generation)).toEqual([document.liveGeneration])
    const storedKeys = [...world.blobs.keys.keys()].filter((key) => key.startsWith(id))
    expect(storedKeys.every((key) => key.startsWith(`${id}_${document.liveGeneration}`))).toBe(true)
    await deleteFile(deps, context, former)
    await deleteDocument(deps, context, id)
    await deleteFile(deps, context, document.fileId)
    expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 0 })
    if (!life.isDead) return
  }
})

it('an unreadable new version leaves the live one, reports the reason, and can be abandoned for another', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'plan.txt', OLD)
  const bad = await replace(deps, collectionId, 'plan.txt', '%corrupt')
  await work(deps, id)
  const failed = await getDocument(deps, organizationId, id)
  expect(failed).toMatchObject({ status: 'ready', chunkCount: 18, replacement: { status: 'failed', error: { code: 'corrupt' } } })
  expect(failed.job).toBeUndefined()
  expect(await find(deps, collectionId, 'old0x0')).toEqual(['old'])
  expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 18 })

  expect((await retryDocument(deps, context, id)).replacement).toMatchObject({ status: 'queued', error: null })
  await work(deps, id)
  expect((await getDocument(deps, organizationId, id)).replacement).toMatchObject({ status: 'failed' })
  await replace(deps, collectionId, 'plan.txt', NEW)
  await deleteFile(deps, context, bad.fileId)
  await work(deps, id)
  expect(await find(deps, collectionId, 'new0x0 old0x0')).toEqual(['new'])
})

it('the last file wins, and the one that waited is abandoned and leaves nothing', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'plan.txt', OLD)
  const second = await replace(deps, collectionId, 'plan.txt', paragraphs(20, 'second'))
  // The second version is superseded when half of it is embedded and indexed.
  world.inference.beforeBatch = async () => {
    world.inference.beforeBatch = () => {}
    await replace(deps, collectionId, 'plan.txt', NEW)
  }
  await expect(work(deps, id)).rejects.toThrow(LeaseLost)
  expect(await find(deps, collectionId, 'old0x0 second0x0 new0x0')).toEqual(['old'])
  await deleteFile(deps, context, second.fileId)
  await work(deps, id)
  expect(await find(deps, collectionId, 'old0x0 second0x0 new0x0')).toEqual(['new'])
  const document = await getDocument(deps, organizationId, id)
  expect(document.versions).toHaveLength(1)
  expect(await index.listGenerations(collectionId, '', 10)).toHaveLength(1)
  expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 20, marks: {} })
  expect([...world.inference.holds.values()].every(({ state }) => state === 'settled')).toBe(true)
  // The first file returns while another one is pending.
  const waiting = await replace(deps, collectionId, 'plan.txt', 'waiting')
  await replace(deps, collectionId, 'plan.txt', NEW)
  await work(deps, id)
  expect(await find(deps, collectionId, 'new0x0 waiting')).toEqual(['new'])
  await deleteFile(deps, context, waiting.fileId)
})

it('a document that is not ready is ingested from the new file', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const first = await attach(deps, collectionId, 'plan.txt', '%corrupt', { metadata: { year: 1 } })
  await work(deps, first.document._id)
  const next = await replace(deps, collectionId, 'plan.txt', 'new harbour')
  expect(next).toMatchObject({ outcome: 'replacing', document: { _id: first.document._id, status: 'queued', metadata: { year: 1 } } })
  await deleteFile(deps, context, first.fileId)
  await work(deps, first.document._id)
  expect(await getDocument(deps, organizationId, first.document._id)).toMatchObject({ status: 'ready', fileId: next.fileId })
})

it('an external ID identifies one document of a collection, under any file name', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const first = await attach(deps, collectionId, 'a.txt', 'old harbour', { externalId: 'contract/7' })
  await work(deps, first.document._id)
  await expect(attach(deps, collectionId, 'b.txt', 'new harbour', { externalId: 'contract/7' })).rejects.toMatchObject({
    code: 'already_exists',
    param: 'input.externalId',
  })
  const next = await replace(deps, collectionId, 'b.txt', 'new harbour', { externalId: 'contract/7' })
  expect(next).toMatchObject({ outcome: 'replacing', document: { _id: first.document._id } })
  await work(deps, first.document._id)
  expect(await getDocument(deps, organizationId, first.document._id)).toMatchObject({
    fileName: 'b.txt',
    externalId: 'contract/7',
    version: 2,
  })
  // Bytes that are already another document cannot also be a version.
  await attach(deps, collectionId, 'c.txt', 'third harbour')
  await expect(replace(deps, collectionId, 'c.txt', 'third harbour', { externalId: 'contract/7' })).rejects.toMatchObject({
    code: 'already_exists',
    param: 'input.fileId',
  })
  for (const externalId of ['', ' a', 'a\n', 'x'.repeat(201)])
    await expect(attach(deps, collectionId, 'd.txt', 'd', { externalId })).rejects.toMatchObject({ param: 'input.externalId' })
  await deleteDocument(deps, context, first.document._id)
  expect(await attach(deps, collectionId, 'b.txt', 'new harbour', { externalId: 'contract/7' })).toMatchObject({ outcome: 'created' })
})

it('a file uploaded for a document becomes its next version, under any name', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const { document } = await replace(deps, collectionId, 'report.txt', OLD)
  const documentId = document._id
  await work(deps, documentId)
  const other = await addReady(deps, collectionId, 'report.txt', paragraphs(3, 'other'))
  const next = await attach(deps, collectionId, 'report-2027.txt', NEW, { documentId })
  expect(next).toMatchObject({ outcome: 'replacing', document: { _id: documentId } })
  await work(deps, documentId)
  await work(deps, documentId)
  expect(await getDocument(deps, organizationId, documentId)).toMatchObject({ version: 2, fileName: 'report-2027.txt' })
  expect((await getDocument(deps, organizationId, other)).version ?? 1).toBe(1)
  // The former name belongs to another document.
  await deleteDocument(deps, context, other)
  expect(await replace(deps, collectionId, 'report.txt', paragraphs(3, 'later'))).toMatchObject({ outcome: 'created' })
  // Documents of another collection, deleted documents, and a document named twice.
  const elsewhere = (await createCollection(deps, context, { code: 'd', name: 'D', embeddingModel: 'embed' }))._id
  for (const [collection, more, code] of [
    [elsewhere, { documentId }, 'not_found'],
    [collectionId, { documentId: 'doc_none' }, 'not_found'],
    [collectionId, { documentId, externalId: 'mine' }, 'invalid_request'],
  ] as const)
    await expect(attach(deps, collection, 'x.txt', paragraphs(3, 'fourth'), more)).rejects.toMatchObject({
      code,
      param: 'input.documentId',
    })
})

it('concurrent replacements by files of one name become one document', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  await Promise.all(['one', 'two', 'three'].map((text) => replace(deps, collectionId, 'plan.txt', `${text} harbour`)))
  const collection = (await deps.store.collections.findOne({ _id: collectionId }))!
  const { edges } = await listDocuments(deps, collection, {}, new SiftBudget())
  expect(edges).toHaveLength(1)
  const id = edges[0]!.node._id
  await work(deps, id)
  expect(await find(deps, collectionId, 'harbour')).toHaveLength(1)
  // A document with another name does not match.
  await updateDocument(deps, context, { id, name: 'renamed.txt' })
  expect(await replace(deps, collectionId, 'plan.txt', 'four harbour')).toMatchObject({ outcome: 'created' })
})

it('a change of name and metadata while a version waits persists', async () => {
  for (const text of ['new harbour', '%corrupt']) {
    const deps = depsOn(newWorld({ index }))
    const collectionId = await newCollection(deps)
    const id = await addReady(deps, collectionId, 'plan.txt', 'old harbour')
    await replace(deps, collectionId, 'plan.txt', text)
    await updateDocument(deps, context, { id, name: 'final.txt', metadata: { year: 7 } })
    const search = (filter: unknown) =>
      searchCollection(deps, context, { collectionId, query: 'harbour', limit: 5, mode: 'hybrid', filter }).then(({ hits }) => hits.length)
    expect(await search({ file_name: 'final.txt' })).toBe(1)
    await work(deps, id)
    expect(await getDocument(deps, organizationId, id)).toMatchObject({ fileName: 'final.txt', metadata: { year: 7 } })
    expect(await search({ 'metadata.year': 7 })).toBe(1)
    expect(await search({ file_name: 'plan.txt' })).toBe(0)
  }
})

it('retains the last versions only, and a deletion leaves none', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'plan.txt', 'version 1')
  const files = [(await getDocument(deps, organizationId, id)).fileId]
  for (let version = 2; version <= MAX_VERSIONS + 3; version++) {
    files.push((await replace(deps, collectionId, 'plan.txt', `version ${version}`)).fileId)
    await work(deps, id)
  }
  const { versions, version } = await getDocument(deps, organizationId, id)
  expect(version).toBe(MAX_VERSIONS + 3)
  expect(versions!.map((one) => one.version)).toEqual(Array.from({ length: MAX_VERSIONS }, (_, i) => i + 3))
  await replace(deps, collectionId, 'plan.txt', 'one that waits')
  await deleteDocument(deps, context, id)
  expect([...world.blobs.keys.keys()].filter((key) => key.startsWith(id))).toEqual([])
  expect(await deps.store.sketches.findOne({ _id: `${id}_0` })).toBeNull()
  expect(await readUsage(deps.store, organizationId)).toMatchObject({ vectors: 0, marks: {} })
  for (const fileId of files) await deleteFile(deps, context, fileId)
})

it('reports near-duplicates of the collection with their similarity, until their documents are deleted', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const lines = Array.from(
    { length: 60 },
    (_, i) => `Article ${i}: the tenant of hall ${i * 7} pays the dues of month ${i % 12} to the port.`,
  )
  const contract = lines.join('\n')
  const id = await addReady(deps, collectionId, 'contract.txt', contract)
  const near = await addReady(deps, collectionId, 'contract-2.txt', contract.replace('Article 3:', 'Article 3 (changed):'))
  await addReady(deps, collectionId, 'other.txt', paragraphs(3, 'other'))
  const similar = async (of: string) =>
    (await findSimilar(deps, await getDocument(deps, organizationId, of), 10)).map(({ document, similarity }) => [
      document._id,
      similarity > 0.8,
    ])
  expect(await similar(id)).toEqual([[near, true]])
  expect(await similar(near)).toEqual([[id, true]])
  await replace(deps, collectionId, 'contract-2.txt', paragraphs(2, 'another'))
  await work(deps, near)
  expect(await similar(id)).toEqual([])
  await expect(findSimilar(deps, await getDocument(deps, organizationId, id), 21)).rejects.toMatchObject({ param: 'first' })
})
