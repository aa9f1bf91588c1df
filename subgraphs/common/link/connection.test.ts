import { describe, expect, it } from 'vitest'
import { readPage, toConnection, totalCount } from './connection.ts'

const KEY = /^\d+$/
const pages = (items: readonly number[], first: number) => {
  const seen: number[][] = []
  let after: string | null = null
  do {
    const page = readPage({ first, after }, KEY)
    const rest = items.filter((item) => page.from === null || item > Number(page.from)).slice(0, page.limit)
    const connection = toConnection(rest, page, String, () => items.length)
    seen.push(connection.edges.map((edge) => edge.node))
    after = connection.pageInfo.hasNextPage ? connection.pageInfo.endCursor : null
  } while (after !== null)
  return seen
}

describe('Relay connection', () => {
  it('returns every item once, page by page', () => {
    expect(pages([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
    expect(pages([1, 2, 3, 4], 2)).toEqual([
      [1, 2],
      [3, 4],
    ])
    expect(pages([], 2)).toEqual([[]])
  })

  it('returns 20 items by default', () => {
    const page = { size: 20, limit: 21, from: null, isBackward: false }
    expect(readPage({}, KEY)).toEqual(page)
    expect(readPage({ first: null, after: null, last: null, before: null }, KEY)).toEqual(page)
  })

  it('returns every item once from the end backwards, in the order of the list', () => {
    const items = [1, 2, 3, 4, 5]
    const seen: unknown[] = []
    for (let before: string | null = null; ; ) {
      const page = readPage({ last: 2, before }, KEY)
      const rest = items.filter((item) => page.from === null || item < Number(page.from)).toReversed()
      const { edges, pageInfo } = toConnection(rest.slice(0, page.limit), page, String, () => items.length)
      seen.push([edges.map(({ node }) => node), pageInfo.hasPreviousPage, pageInfo.hasNextPage])
      before = pageInfo.startCursor
      if (!pageInfo.hasPreviousPage) break
    }
    expect(seen).toEqual([
      [[4, 5], true, false],
      [[2, 3], true, true],
      [[1], false, true],
    ])
  })

  it('counts up to a limit', async () => {
    expect(await totalCount({ count: (limit) => Math.min(limit, 100_000) })).toBe(100_000)
    expect(await totalCount({ count: (limit) => Math.min(limit, 100_001) })).toBeNull()
  })

  for (const { name, page, code, param } of [
    { name: 'both directions', page: { first: 1, before: 'MQ' }, code: 'invalid_request', param: 'last' },
    { name: 'too many last items', page: { last: 101 }, code: 'integer_above_max_value', param: 'last' },
    { name: 'an invalid last cursor', page: { last: 1, before: '*' }, code: 'invalid_request', param: 'before' },
    { name: 'zero items', page: { first: 0 }, code: 'integer_below_min_value', param: 'first' },
    { name: 'too many items', page: { first: 101 }, code: 'integer_above_max_value', param: 'first' },
    { name: 'a cursor that is not base64url', page: { after: '*' }, code: 'invalid_request', param: 'after' },
    { name: 'a cursor with padding', page: { after: 'MQ==' }, code: 'invalid_request', param: 'after' },
    { name: 'an empty cursor', page: { after: '' }, code: 'invalid_request', param: 'after' },
    {
      name: 'a cursor of another list',
      page: { after: Buffer.from('key_1').toString('base64url') },
      code: 'invalid_request',
      param: 'after',
    },
  ])
    it(`refuses ${name}`, () => expect(() => readPage(page, KEY)).toThrow(expect.objectContaining({ code, param })))
})
