import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import type { Connection } from '../link/connection.ts'
import { idSource } from '../process/ids.ts'
import { listSifted, nameTest, type Sieve, SiftBudget } from './lists.ts'

interface Note {
  readonly _id: string
  readonly owner: string
  readonly name: string
}

/** Creates one note per minute. */
async function notes(names: readonly string[]) {
  let minute = 0
  const newId = idSource({ now: () => new Date(minute++ * 60_000) } as never)
  const indexes = [{ fields: ['owner'] }, { fields: ['owner', 'name'] }]
  const records = new MemoryDocumentStore().collection<Note>({ name: 'notes', indexes })
  for (const name of names) await records.insertOne({ _id: newId('doc'), owner: 'a', name })
  const sieve: Sieve<Note> = { filter: { owner: 'a' }, idPrefix: 'doc', matches: null, sortBy: null }
  return (overrides: Partial<Sieve<Note>>, page: Parameters<typeof listSifted>[2]) => listSifted(records, { ...sieve, ...overrides }, page)
}

const namesIn = ({ edges }: Connection<Note>) => edges.map(({ node }) => node.name)
const at = (minute: number) => new Date(minute * 60_000)

/** Returns all pages, forward or backward, as one list in the order of the list. */
async function all(list: (page: object) => Promise<Connection<Note>>, size: number, isBackward: boolean): Promise<readonly string[]> {
  const names: string[] = []
  let cursor: string | null = null
  for (;;) {
    const page: Connection<Note> = await list(isBackward ? { last: size, before: cursor } : { first: size, after: cursor })
    if (isBackward) names.unshift(...namesIn(page))
    else names.push(...namesIn(page))
    const { hasNextPage, hasPreviousPage, startCursor, endCursor } = page.pageInfo
    if (isBackward ? !hasPreviousPage : !hasNextPage) return names
    cursor = isBackward ? startCursor : endCursor
  }
}

for (const isBackward of [false, true])
  for (const size of [1, 2, 3, 10]) {
    const way = `${isBackward ? 'backward' : 'forward'} in pages of ${size}`
    it(`sorts by name and then by age, ${way}`, async () => {
      const list = await notes(['b', 'a', 'c', 'a', 'أ', 'a'])
      const sorted = ['a', 'a', 'a', 'b', 'c', 'أ']
      expect(await all((page) => list({ sortBy: 'name' }, { order: 'asc', ...page }), size, isBackward)).toEqual(sorted)
      expect(await all((page) => list({ sortBy: 'name' }, { order: 'desc', ...page }), size, isBackward)).toEqual(sorted.toReversed())
    })

    it(`lists a period, ${way}`, async () => {
      const list = await notes(['0', '1', '2', '3', '4', '5'])
      const span = { since: at(1), until: at(4) }
      expect(await all((page) => list(span, page), size, isBackward)).toEqual(['3', '2', '1'])
      expect(await all((page) => list(span, { order: 'asc', ...page }), size, isBackward)).toEqual(['1', '2', '3'])
      expect(await all((page) => list({ ...span, sortBy: 'name' }, { order: 'asc', ...page }), size, isBackward)).toEqual(['1', '2', '3'])
    })

    it(`lists matches, ${way}`, async () => {
      const list = await notes(Array.from({ length: 250 }, (_, i) => `note ${i}`))
      const isNamed = nameTest('E 12')!
      const expected = [
        'note 129',
        'note 128',
        'note 127',
        'note 126',
        'note 125',
        'note 124',
        'note 123',
        'note 122',
        'note 121',
        'note 120',
        'note 12',
      ]
      expect(await all((page) => list({ matches: ({ name }) => isNamed(name) }, page), size, isBackward)).toEqual(expected)
    })
  }

it('counts what an index serves, and nothing else', async () => {
  const list = await notes(['0', '1', '2', '3'])
  expect(await (await list({}, { first: 1 })).count(100)).toBe(4)
  expect(await (await list({ since: at(1) }, { first: 1 })).count(100)).toBe(3)
  expect(await (await list({ sortBy: 'name' }, { first: 1 })).count(100)).toBe(4)
  expect(await (await list({ matches: () => true }, { first: 1 })).count(100)).toBe(Number.POSITIVE_INFINITY)
})

it('ends a page that has read much and found little, and continues there', async () => {
  const list = await notes(Array.from({ length: 2_300 }, (_, i) => String(i)))
  const matches = ({ name }: Note) => name === '7'
  const first = await list({ matches }, { first: 5 })
  expect([namesIn(first), first.pageInfo.hasNextPage]).toEqual([[], true])
  const second = await list({ matches }, { first: 5, after: first.pageInfo.endCursor })
  expect([namesIn(second), second.pageInfo.hasNextPage]).toEqual([['7'], false])
})

it('refuses a cursor of another order', async () => {
  const list = await notes(['a', 'b'])
  const { pageInfo } = await list({}, { first: 1 })
  await expect(list({ sortBy: 'name' }, { first: 1, after: pageInfo.endCursor })).rejects.toMatchObject({
    code: 'invalid_request',
    param: 'after',
  })
})

it('limits the reads of all lists of one operation together', async () => {
  const list = await notes(Array.from({ length: 2_000 }, (_, i) => `note ${i}`))
  const page = (sifting?: SiftBudget) => list({ matches: () => false, ...(sifting && { sifting }) }, { first: 1 })
  const sifting = new SiftBudget()
  const pages = await Promise.allSettled(Array.from({ length: 15 }, () => page(sifting)))
  const refused = pages.filter((each) => each.status === 'rejected')
  expect(refused.length).toBeGreaterThanOrEqual(5)
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'operation_too_complex' })
  expect((await page()).edges).toEqual([])
})
