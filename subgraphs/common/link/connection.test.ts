import { describe, expect, it } from 'vitest'
import { readPage, toConnection } from './connection.ts'

const KEY = /^\d+$/
const pages = (items: readonly number[], first: number) => {
  const seen: number[][] = []
  let after: string | null = null
  do {
    const page = readPage({ first, after }, KEY)
    const rest = items.filter((item) => page.after === null || item > Number(page.after)).slice(0, page.limit)
    const connection = toConnection(rest, page, String)
    seen.push(connection.edges.map((edge) => edge.node))
    after = connection.pageInfo.hasNextPage ? connection.pageInfo.endCursor : null
  } while (after !== null)
  return seen
}

describe('a Relay connection', () => {
  it('gives every item once, page by page', () => {
    expect(pages([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
    expect(pages([1, 2, 3, 4], 2)).toEqual([
      [1, 2],
      [3, 4],
    ])
    expect(pages([], 2)).toEqual([[]])
  })

  it('gives 20 items when the caller does not say', () => {
    expect(readPage({}, KEY)).toEqual({ first: 20, limit: 21, after: null })
    expect(readPage({ first: null, after: null }, KEY)).toEqual({ first: 20, limit: 21, after: null })
  })

  for (const { name, page, code, param } of [
    { name: 'no items', page: { first: 0 }, code: 'integer_below_min_value', param: 'first' },
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
