import { expect, it } from 'vitest'
import { addReady, attach, ingest, newCollection, newWorld, openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { base64, Crash, createContext, depsOn, Life, paragraphs, plainParser, principal } from '../../../../test/support/knowledge.ts'
import { claimJob, LEASE_MS } from '../../../common/documents/jobs.ts'
import type { DocumentParser } from '../../ports/document-parser.ts'
import { readPageBoxes } from '../chunk-index/page-boxes.ts'
import { restoreDocument, textMapKey } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'
import { uploadFile } from '../files/files.ts'
import { searchCollection } from '../search/search-collection.ts'
import { createCollection } from './collections.ts'
import { countByStatus, getDocument } from './documents.ts'
import { listChunks } from './list-chunks.ts'
import { createDocuments, deleteDocuments, retryDocuments } from './many-documents.ts'
import { readText, type TextRange } from './read-text.ts'
import { settleDocument } from './settle-document.ts'
import { updateDocument } from './update-document.ts'

const context = createContext()
const { organizationId } = principal
const index = await openTestIndex()

/** Parses a form feed as the end of a page. */
const pageParser: DocumentParser = {
  ...plainParser,
  async parse(bytes, name, signal) {
    const raw = Buffer.from(bytes as Uint8Array).toString()
    const parsed = await plainParser.parse(Buffer.from(raw.replaceAll('\f', '\n')), name, signal)
    const pageOf = (at: number) => raw.slice(0, at).split('\f').length
    return {
      ...parsed,
      blocks: parsed.blocks.map((block) => ({ ...block, page: pageOf(block.charStart) })),
      pageCount: raw.split('\f').length,
    }
  },
}

async function findNames(deps: Deps, collectionId: string, query: string, filter: unknown = null): Promise<readonly string[]> {
  const { hits } = await searchCollection(deps, context, { collectionId, query, limit: 10, mode: 'hybrid', filter })
  return [...new Set(hits.map(({ document }) => document.fileName))]
}

it('returns the text by pages and offsets, in parts that join to the whole, without split characters', async () => {
  const deps = depsOn(newWorld({ index, parser: pageParser }))
  const collectionId = await newCollection(deps)
  const pages = ['Harbour dues.', '', `ميناء صور ${'😀'.repeat(50_000)}`, 'The end.']
  const id = await addReady(deps, collectionId, 'a.pdf', pages.join('\f'))
  const document = await getDocument(deps, organizationId, id)
  const whole = pages.join('\n')
  const read = (range: Partial<TextRange>) => readText(deps, document, { length: 262_144, ...range })

  expect(await read({})).toMatchObject({ text: whole, charStart: 0, charEnd: whole.length, totalChars: whole.length, nextOffset: null })
  expect(await read({ pageStart: 1, pageEnd: 1 })).toMatchObject({ text: 'Harbour dues.\n\n', nextOffset: null })
  expect((await read({ pageStart: 4 }))?.text).toBe('The end.')
  expect((await read({ pageStart: 3, pageEnd: 3, length: 12 }))?.nextOffset).toBe(whole.indexOf('ميناء') + 12)
  const { pages: shown } = (await read({}))!
  expect(shown.map(({ page }) => page)).toEqual([1, 3, 4])
  for (const { page, charStart, charEnd } of shown) expect(whole.slice(charStart, charEnd).trim()).toBe(pages[page - 1])

  let joined = ''
  for (let offset: number | null = 0; offset !== null; ) {
    const part: Awaited<ReturnType<typeof read>> = await read({ offset, length: 7_777 })
    expect(part!.text.isWellFormed()).toBe(true)
    expect(part!.charStart).toBe(joined.length)
    joined += part!.text
    offset = part!.nextOffset
  }
  expect(joined).toBe(whole)
  expect(await read({ offset: whole.length + 5 })).toMatchObject({ text: '', nextOffset: null })

  for (const [range, code, param] of [
    [{ offset: -1 }, 'integer_below_min_value', 'offset'],
    [{ length: 0 }, 'integer_below_min_value', 'length'],
    [{ length: 262_145 }, 'integer_above_max_value', 'length'],
    [{ pageStart: 5 }, 'integer_above_max_value', 'pageStart'],
    [{ pageStart: 3, pageEnd: 2 }, 'integer_below_min_value', 'pageEnd'],
    [{ pageStart: 1, offset: 0 }, 'invalid_request', 'pageStart'],
  ] as const)
    await expect(read(range)).rejects.toMatchObject({ code, param })
})

it('returns the text without pages if an earlier version read the document, or its page map is corrupted', async () => {
  const world = newWorld({ index, parser: pageParser })
  const deps = depsOn(world)
  const id = await addReady(deps, await newCollection(deps), 'a.pdf', 'One.\fTwo.')
  for (const key of [...world.blobs.keys.keys()]) if (key.endsWith('_map')) world.blobs.keys.delete(key)
  const document = await getDocument(deps, organizationId, id)
  expect(await readText(deps, document, { offset: 5, length: 3 })).toMatchObject({ text: 'Two', totalChars: 9, nextOffset: 8, pages: [] })
  await deps.blobs.put(textMapKey(document._id, document.liveGeneration!), Buffer.alloc(9))
  expect(await readText(deps, document, { offset: 5, length: 3 })).toMatchObject({ text: 'Two', totalChars: 9, nextOffset: 8, pages: [] })
  await expect(readText(deps, document, { pageStart: 2, length: 3 })).rejects.toMatchObject({ code: 'invalid_request', param: 'pageStart' })
})

/** Parses each line of the text as a line of its page. */
const placingParser: DocumentParser = {
  ...pageParser,
  async parse(file, name, signal) {
    const parsed = await pageParser.parse(file, name, signal)
    const lines = [...parsed.text.matchAll(/.+/g)].map(({ 0: line, index: charStart }, number) => {
      const { page } = parsed.blocks.find((block) => block.charEnd > charStart)!
      return { page: page!, charStart, charEnd: charStart + line.length, x: 50, y: 100 + 12 * number, width: 5 * line.length, height: 10 }
    })
    const pages = [...new Set(lines.map(({ page }) => page))].map((page) => ({ page, width: 600, height: 800 }))
    return { ...parsed, layout: { pages, lines } }
  },
}

it('reports the position of each chunk on the page, until the document is deleted', async () => {
  const world = newWorld({ index, parser: placingParser })
  const deps = depsOn(world)
  const id = await addReady(deps, await newCollection(deps), 'a.pdf', 'Harbour dues\nof Sur.\n\n\fThe end.')
  const chunks = (await listChunks(deps, await getDocument(deps, organizationId, id), {})).edges.map(({ node }) => node)
  const shown = await Promise.all(
    chunks.map(async (chunk) =>
      (await readPageBoxes(deps, chunk))!.flatMap(({ page, boxes }) =>
        boxes.map(({ start, end, y }) => [page, y, chunk.text.slice(start, end)]),
      ),
    ),
  )
  expect(shown.flat()).toEqual([
    [1, 100, 'Harbour dues'],
    [1, 112, 'of Sur.'],
    [2, 124, 'The end.'],
  ])
  const linesKeys = () => [...world.blobs.keys.keys()].filter((key) => key.includes('_lines_'))
  expect(linesKeys()).toHaveLength(1)
  await deps.blobs.put(linesKeys()[0]!, Buffer.alloc(9))
  expect(await readPageBoxes(deps, chunks[0]!)).toBeNull()
  await deleteDocuments(deps, context, { collectionId: chunks[0]!.collectionId, ids: [id] })
  expect(linesKeys()).toEqual([])
})

it('reports no positions of chunks from an earlier version of the service', async () => {
  const deps = depsOn(newWorld({ index, parser: pageParser }))
  const id = await addReady(deps, await newCollection(deps), 'a.pdf', 'Harbour dues of Sur.')
  const [first] = (await listChunks(deps, await getDocument(deps, organizationId, id), {})).edges
  expect(await readPageBoxes(deps, first!.node)).toBeNull()
})

it('lists the chunks of a document page by page, and none before it is ready', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const { id } = await attach(deps, collectionId, 'a.txt', paragraphs(7))
  expect((await listChunks(deps, await getDocument(deps, organizationId, id), {})).edges).toEqual([])
  await ingest(deps, id)
  const document = await getDocument(deps, organizationId, id)
  const ordinals: number[] = []
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof listChunks>> = await listChunks(deps, document, { first: 3, after })
    ordinals.push(...page.edges.map(({ node }) => node.ordinal))
    if (!page.pageInfo.hasNextPage) break
    after = page.pageInfo.endCursor
  }
  expect(ordinals).toEqual([0, 1, 2, 3, 4, 5, 6])
  await expect(listChunks(deps, document, { after: Buffer.from('chunk_other').toString('base64url') })).rejects.toMatchObject({
    code: 'invalid_request',
    param: 'after',
  })
})

it('an update affects the next search, embeds nothing, and survives the loss of the index', async () => {
  const world = newWorld({ index })
  const deps = depsOn(world)
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'draft.txt', 'The harbour dues of Sur.')
  const { batches } = world.inference
  const updated = await updateDocument(deps, context, { id, name: 'final.txt', metadata: { year: 2026 } })
  expect(updated).toMatchObject({ fileName: 'final.txt', metadata: { year: 2026 }, status: 'ready' })
  expect((await getDocument(deps, organizationId, id)).job).toBeUndefined()
  expect(await findNames(deps, collectionId, 'harbour', { file_name: 'final.txt' })).toEqual(['final.txt'])
  expect(await findNames(deps, collectionId, 'harbour', { 'metadata.year': 2026 })).toEqual(['final.txt'])
  expect(await findNames(deps, collectionId, 'harbour', { file_name: 'draft.txt' })).toEqual([])
  // Omitted fields stay, and null removes all metadata.
  await updateDocument(deps, context, { id, metadata: null })
  expect(await findNames(deps, collectionId, 'harbour', { 'metadata.year': 2026 })).toEqual([])
  expect(await findNames(deps, collectionId, 'harbour', { language: 'en' })).toEqual(['final.txt'])
  await index.deleteDocument(collectionId, id)
  expect(await restoreDocument(deps, await getDocument(deps, organizationId, id), collectionId)).toBe(true)
  expect(await findNames(deps, collectionId, 'harbour', { file_name: 'final.txt' })).toEqual(['final.txt'])
  expect(world.inference.batches).toBe(batches)
  await expect(updateDocument(deps, context, { id, name: 'a/b' })).rejects.toMatchObject({ code: 'invalid_request', param: 'input.name' })
})

it('an update that dies at any call is finished by a worker', async () => {
  for (let call = 1; ; call++) {
    const world = newWorld({ index })
    const deps = depsOn(world)
    const collectionId = await newCollection(deps)
    const id = await addReady(deps, collectionId, 'draft.txt', 'The harbour dues of Sur.')
    const life = new Life(call, call % 2 ? 'failed' : 'lost answer')
    await updateDocument(depsOn(world, life), context, { id, name: 'final.txt' }).catch((error) => expect(error).toBeInstanceOf(Crash))
    world.clock.ms += LEASE_MS + 1
    const leased = await claimJob(deps.store.documents, deps.clock, id)
    if (leased) await settleDocument(deps, id)
    const { fileName, job } = await getDocument(deps, organizationId, id)
    expect(job).toBeUndefined()
    expect(await findNames(deps, collectionId, 'harbour', { file_name: fileName })).toEqual([fileName])
    if (!life.isDead) return expect(fileName).toBe('final.txt')
  }
})

it('an update at any call of an ingestion is in the index when the document is ready', async () => {
  for (let call = 1; ; call++) {
    const world = newWorld({ index })
    const deps = depsOn(world)
    const collectionId = await newCollection(deps)
    const { id } = await attach(deps, collectionId, 'draft.txt', 'The harbour dues of Sur.')
    const life = new Life()
    let isOver = true
    life.onCall = async (at) => {
      if (at !== call) return
      isOver = false
      await updateDocument(deps, context, { id, name: 'final.txt' })
    }
    await ingest(depsOn(world, life), id)
    if (isOver) return
    expect(await getDocument(deps, organizationId, id)).toMatchObject({ status: 'ready', fileName: 'final.txt' })
    expect(await findNames(deps, collectionId, 'harbour', { file_name: 'final.txt' })).toEqual(['final.txt'])
  }
})

it('concurrent updates leave the index consistent with the record', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const id = await addReady(deps, collectionId, 'draft.txt', 'The harbour dues of Sur.')
  await Promise.all(['a', 'b', 'c', 'd'].map((name) => updateDocument(deps, context, { id, name: `${name}.txt` })))
  const { fileName, job } = await getDocument(deps, organizationId, id)
  expect(job).toBeUndefined()
  expect(await findNames(deps, collectionId, 'harbour', { file_name: fileName })).toEqual([fileName])
})

it('attaches, retries and deletes many documents, each with its own result', async () => {
  const deps = depsOn(newWorld({ index }))
  const collectionId = await newCollection(deps)
  const files = await Promise.all(
    ['one', '%corrupt', 'three'].map((text, i) => uploadFile(deps, context, { name: `${i}.txt`, contentBase64: base64(text) })),
  )
  const fileIds = [files[0]!._id, 'file_none', files[1]!._id, files[2]!._id, files[0]!._id]
  const attached = await createDocuments(deps, context, { collectionId, documents: fileIds.map((fileId) => ({ fileId })) })
  expect(attached.map(({ id, value, error }) => [id, value?.outcome ?? null, error?.code ?? null])).toEqual([
    [fileIds[0], 'created', null],
    ['file_none', null, 'not_found'],
    [fileIds[2], 'created', null],
    [fileIds[3], 'created', null],
    [fileIds[0], 'unchanged', null],
  ])
  const ids = [0, 2, 3].map((i) => attached[i]!.value!.document._id)
  for (const id of ids) await ingest(deps, id)
  const collection = (await deps.store.collections.findOne({ _id: collectionId }))!
  expect(await countByStatus(deps, collection)).toEqual({ queued: 0, processing: 0, ready: 2, failed: 1 })

  const retried = await retryDocuments(deps, context, { collectionId, ids: [...ids, 'doc_none'] })
  expect(retried.map(({ value, error }) => value?.status ?? error?.code)).toEqual(['ready', 'queued', 'ready', 'not_found'])

  const other = await createCollection(deps, context, { code: 'other', name: 'O', embeddingModel: 'embed' })
  const otherResult = await deleteDocuments(deps, context, { collectionId: other._id, ids: [ids[0]!] })
  expect(otherResult[0]!.error).toMatchObject({ code: 'not_found' })
  const deleted = await deleteDocuments(deps, context, { collectionId, ids: [...ids, ids[0]!] })
  expect(deleted.map(({ error }) => error?.code ?? 'deleted')).toEqual(['deleted', 'deleted', 'deleted', 'not_found'])
  expect(await countByStatus(deps, collection)).toEqual({ queued: 0, processing: 0, ready: 0, failed: 0 })
  await expect(deleteDocuments(deps, context, { collectionId, ids: Array(101).fill('doc_1') })).rejects.toMatchObject({
    code: 'array_above_max_length',
    param: 'input.ids',
  })
})
