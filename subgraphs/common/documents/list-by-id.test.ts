import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { Connection } from '../link/connection.ts'
import { listById, type OrderedPage } from './lists.ts'

interface Note {
  readonly _id: string
  readonly owner: string
}

async function notes() {
  const records = new MemoryDocumentStore().collection<Note>({ name: 'notes', indexes: [{ fields: ['owner'] }] })
  await records.insertMissing([1, 2, 3, 4].map((n) => ({ _id: `note_${n}`, owner: n === 2 ? 'b' : 'a' })))
  return (args: OrderedPage) => listById(records, { owner: 'a' }, args, /^note_/)
}

const idsIn = ({ edges }: Connection<Note>) => edges.map(({ node }) => node._id)

for (const [order, ids] of [
  ['desc', ['note_4', 'note_3', 'note_1']],
  ['asc', ['note_1', 'note_3', 'note_4']],
  [null, ['note_4', 'note_3', 'note_1']],
] as const) {
  it(`lists what matches the filter, page by page, in the order ${order}`, async () => {
    const list = await notes()
    const first = await list({ first: 2, order })
    const second = await list({ first: 2, order, after: first.pageInfo.endCursor })
    expect([idsIn(first), idsIn(second)]).toEqual([ids.slice(0, 2), ids.slice(2)])
    expect([first.pageInfo.hasNextPage, second.pageInfo.hasNextPage]).toEqual([true, false])
  })
}

for (const [order, ids] of [
  ['desc', ['note_4', 'note_3', 'note_1']],
  ['asc', ['note_1', 'note_3', 'note_4']],
] as const) {
  it(`lists from the end backwards in the order ${order}, and counts all`, async () => {
    const list = await notes()
    const last = await list({ last: 2, order })
    const before = await list({ last: 2, order, before: last.pageInfo.startCursor })
    expect([idsIn(before), idsIn(last)]).toEqual([ids.slice(0, 1), ids.slice(1)])
    expect([last, before].map(({ pageInfo }) => [pageInfo.hasPreviousPage, pageInfo.hasNextPage])).toEqual([
      [true, false],
      [false, true],
    ])
    expect([await last.count(10), await last.count(2)]).toEqual([3, 2])
  })
}

it('refuses the cursor of another list', async () => {
  const list = await notes()
  const after = Buffer.from('file_1').toString('base64url')
  await expect(list({ after })).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
})
