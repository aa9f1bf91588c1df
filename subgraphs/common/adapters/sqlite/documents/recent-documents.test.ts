import { expect, it } from 'vitest'
import { RecentDocuments } from './recent-documents.ts'

const text = (n: number) => JSON.stringify({ _id: 'a', n, at: { $date: 5 }, below: { list: [{ n }] } })

it('parses a document when it is read for the second time with the same text', () => {
  const recent = new RecentDocuments()
  expect(recent.find('a', text(1))).toBeUndefined()
  const found = recent.find('a', text(1))
  expect(found).toEqual({
    stored: { _id: 'a', n: 1, at: { $date: 5 }, below: { list: [{ n: 1 }] } },
    document: { _id: 'a', n: 1, at: new Date(5), below: { list: [{ n: 1 }] } },
  })
  expect(recent.find('a', text(1))).toBe(found)
})

it('never gives another text', () => {
  const recent = new RecentDocuments()
  for (let read = 0; read < 2; read++) recent.find('a', text(1))
  expect(recent.find('a', text(2))).toBeUndefined()
  expect(recent.find('a', text(2))?.stored.n).toBe(2)
  expect(recent.find('a', text(1))).toBeUndefined()
})

it('gives what nobody can change', () => {
  const recent = new RecentDocuments<{ below: { list: { n: number }[] } }>()
  recent.find('a', text(1))
  const { document } = recent.find('a', text(1))!
  expect(() => document.below.list.push({ n: 2 })).toThrow(TypeError)
  expect(() => Object.assign(document.below.list[0]!, { n: 2 })).toThrow(TypeError)
})

it('keeps a bounded length of text, the last read first', () => {
  const recent = new RecentDocuments()
  const long = (id: string) => JSON.stringify({ _id: id, text: 'x'.repeat(100_000) })
  for (const id of ['a', 'b', 'c']) for (let read = 0; read < 2; read++) recent.find(id, long(id))
  expect(recent.find('c', long('c'))).toBeDefined()
  expect(recent.find('b', long('b'))).toBeDefined()
  expect(recent.find('a', long('a'))).toBeUndefined()
})
