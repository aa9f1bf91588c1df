import { expect, it } from 'vitest'
import { readPage } from '../link/connection.ts'
import { longRecordsPage, ReadBudget } from './long-records.ts'

const MEBI = 1024 * 1024

/** Returns records with texts of these lengths, in order, and the number of records read. */
function createRecords(lengths: readonly number[]) {
  const records = lengths.map((length, i) => ({ id: `id_${String(i).padStart(3, '0')}`, nested: [{ text: 'x'.repeat(length) }] }))
  const stats = { read: 0 }
  const read = async (after: string | null, limit: number) => {
    const found = records.filter(({ id }) => after === null || id > after).slice(0, limit)
    stats.read += found.length
    return found
  }
  const pageFrom = (first: number, after?: string | null, budget = new ReadBudget()) =>
    longRecordsPage(
      readPage({ first, ...(after && { after }) }, /^id_/),
      budget,
      ({ id }) => id,
      read,
      () => 0,
    )
  return { stats, pageFrom }
}

it('returns full pages while their records are short', async () => {
  const { pageFrom } = createRecords(Array(250).fill(10))
  const lengths: number[] = []
  for (let after: string | null = null, isLast = false; !isLast; ) {
    const { edges, pageInfo } = await pageFrom(100, after)
    lengths.push(edges.length)
    after = pageInfo.endCursor
    isLast = !pageInfo.hasNextPage
  }
  expect(lengths).toEqual([100, 100, 50])
})

it('ends a page early if records are long, reports that another follows, and omits none', async () => {
  const { pageFrom, stats } = createRecords([...Array(50).fill(10), ...Array(50).fill(3 * MEBI)])
  const seen: string[] = []
  const first = await pageFrom(100)
  expect([first.edges.length, first.pageInfo.hasNextPage]).toEqual([52, true])
  expect(stats.read).toBeLessThan(58)
  for (let page = first; ; page = await pageFrom(100, page.pageInfo.endCursor)) {
    seen.push(...page.edges.map(({ node }) => node.id))
    if (!page.pageInfo.hasNextPage) break
  }
  expect(new Set(seen).size).toBe(100)
  expect(seen).toHaveLength(100)
})

it('returns one record of any length', async () => {
  const { pageFrom } = createRecords([5 * MEBI, 10])
  const { edges, pageInfo } = await pageFrom(2)
  expect([edges.length, pageInfo.hasNextPage]).toEqual([1, true])
})

it('refuses an operation whose lists are too long together, and reads no more for it', async () => {
  const { pageFrom, stats } = createRecords(Array(100).fill(3 * MEBI))
  const budget = new ReadBudget()
  const lists = await Promise.allSettled(Array.from({ length: 15 }, () => pageFrom(100, null, budget)))
  const refused = lists.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused.length).toBeGreaterThan(5)
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'operation_too_complex' })
  expect(stats.read).toBeLessThan(50)
})
