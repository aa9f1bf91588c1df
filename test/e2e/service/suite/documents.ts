import { expect, it } from 'vitest'
import { drawPdf, ltr } from '../../../../subgraphs/knowledge/adapters/parser/test-support/draw-pdf.ts'
import { addDocument, balancedWallet, type Caller, newCollection, settled } from '../../../support/client.ts'
import { eventually } from '../../../support/eventually.ts'
import type { Running } from './running.ts'

const quotaOf = async (caller: Caller) => (await caller.rest('GET', '/v1/organization')).body.quota

/** A worker may take a deletion from the call that began it, and ends it later. */
async function deleteFile(caller: Caller, id: string): Promise<void> {
  await eventually(async () => (await caller.rest('DELETE', `/v1/files/${id}`)).status === 200)
}

/** The life of a document and of its collection. */
export function documents(running: Running): void {
  it('attaching twice creates one document; an attached file is in use; a deleted document is not found', async () => {
    const caller = await running.newOrganization()
    const collection = await newCollection(caller)
    const document = await addDocument(caller, collection.id, 'tea.txt', 'Green tea is brewed at eighty degrees.')
    const again = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: document.file_id })
    expect([again.status, again.body.id]).toEqual([200, document.id])
    expect((await caller.rest('DELETE', `/v1/files/${document.file_id}`)).body.error.code).toBe('in_use')
    const search = async () => (await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'green tea' })).body.data
    expect(await search()).toHaveLength(1)
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)).body).toMatchObject({
      deleted: true,
    })
    expect(await search()).toEqual([])
    await deleteFile(caller, document.file_id)
    const { vectors, storage_bytes } = await quotaOf(caller)
    expect([vectors.used, storage_bytes.used]).toEqual([0, 0])
  })

  it('a failed document restarts by retry', async () => {
    const caller = await running.newOrganization({ creditUsd: '0' })
    const collection = await newCollection(caller)
    const document = await addDocument(caller, collection.id, 'a.txt', 'Something to embed.')
    expect(document).toMatchObject({ status: 'failed', error: { code: 'insufficient_quota' } })
    await running.operator.rest('POST', `/v1/organizations/${caller.organizationId}/top-ups`, { amount_usd: '1', reference: 'r' })
    expect((await caller.rest('POST', `/v1/collections/${collection.id}/documents/${document.id}/retry`)).status).toBe(200)
    expect(await settled(caller, collection.id, document.id)).toMatchObject({ status: 'ready', error: null, attempts: 2 })
    await balancedWallet(caller)
  })

  it('reports the position of chunks and search hits on the pages of a PDF', async () => {
    const caller = await running.newOrganization()
    const collection = await newCollection(caller)
    const lines = ['The harbour dues of Sur are paid in silver.', 'They are due before the ship has left the bay.']
    const pdf = drawPdf([lines.map((line, index) => ltr(50, 100 + 12 * index, line))])
    const document = await addDocument(caller, collection.id, 'dues.pdf', pdf)
    const boxes = [0, 1].map((index) => ({
      ...{ x: 50, y: 91 + 12 * index, width: 5 * lines[index]!.length, height: 12.5 },
      start: index === 0 ? 0 : lines[0]!.length + 1,
      end: index === 0 ? lines[0]!.length : lines.join(' ').length,
    }))
    const wanted = [{ page: 1, width: 600, height: 800, boxes }]
    const chunks = `/v1/collections/${collection.id}/documents/${document.id}/chunks`
    expect((await caller.rest('GET', `${chunks}?page_boxes=true`)).body.data[0]).toMatchObject({ page_boxes: wanted })
    expect((await caller.rest('GET', chunks)).body.data[0]).not.toHaveProperty('page_boxes')
    const search = `/v1/collections/${collection.id}/search`
    const [hit] = (await caller.rest('POST', search, { query: 'harbour dues', page_boxes: true })).body.data
    expect(hit.page_boxes).toEqual(wanted)
    const [first] = hit.highlights
    expect(boxes.findIndex(({ start, end }) => first.start < end && first.end > start)).toBe(0)
  })

  it('deleting a collection deletes its documents and preserves the files', async () => {
    const caller = await running.newOrganization()
    const collection = await newCollection(caller, 'e5-small-ar-en', 'gone')
    const document = await addDocument(caller, collection.id, 'a.txt', 'A text that stays as a file.')
    expect((await caller.rest('DELETE', `/v1/collections/${collection.id}`)).status).toBe(200)
    expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).status).toBe(404)
    expect((await caller.rest('GET', `/v1/files/${document.file_id}`)).status).toBe(200)
    await eventually(async () => (await quotaOf(caller)).vectors.used === 0)
    await newCollection(caller, 'e5-small-ar-en', 'gone')
    await deleteFile(caller, document.file_id)
  })
}
