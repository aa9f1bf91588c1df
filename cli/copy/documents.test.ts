import { describe, expect, it } from 'vitest'
import type { StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import { MemoryDocumentStore } from '../../test/support/memory-document-store.ts'
import { fillDocuments, pruneDocuments, sumDocuments } from './documents.ts'

interface Thing extends StoredDocument {
  readonly code: string
  readonly at?: Date | string
  readonly text?: string
}

const collection = () => new MemoryDocumentStore().collection<Thing>({ name: 'things', indexes: [{ fields: ['code'], unique: true }] })
const nothing = () => undefined
const sumOf = async (things: ReturnType<typeof collection>) => {
  const { count, text } = await sumDocuments(things, nothing)
  return [count, text]
}

describe('a copy of documents', () => {
  it('ends equal wherever an earlier one was killed, and whatever the source has changed since', async () => {
    const [from, to] = [collection(), collection()]
    // More than a page, and some that make pages short.
    for (let i = 0; i < 1_500; i++)
      await from.insertOne({ _id: `t${i}`, code: `c${i}`, ...(i % 500 === 7 && { text: 'x'.repeat(500_000) }) })
    await to.insertOne({ _id: 't3', code: 'c3' })
    await to.insertOne({ _id: 't5', code: 'before' })
    // Gone from the source, which has its unique key in another document.
    await to.insertOne({ _id: 'gone', code: 'c1499' })
    let deletions = 0
    await pruneDocuments(from, to, async () => {
      deletions++
    })
    expect(deletions).toBe(2)
    await fillDocuments(from, to, nothing)
    expect(await sumOf(to)).toEqual(await sumOf(from))
    await pruneDocuments(from, to, () => Promise.reject(new Error('nothing differs')))
    expect(await to.countDocuments({}, { limit: 9_999 })).toBe(1_500)
  })

  it('tells apart what differs in one value, a date and its text, and not the order of fields', async () => {
    const at = new Date(1_700_000_000_000)
    const sums = new Set<unknown>()
    for (const thing of [{ at }, { at: at.toISOString() }, { at: new Date(at.getTime() + 1) }, {}, { text: '' }]) {
      const things = collection()
      await things.insertOne({ _id: 'a', code: 'c', ...thing })
      sums.add((await sumOf(things))[1])
    }
    expect(sums.size).toBe(5)
    const [one, other] = [collection(), collection()]
    await one.insertOne({ _id: 'a', code: 'c', text: 'x' })
    await other.insertOne({ text: 'x', code: 'c', _id: 'a' })
    expect(await sumOf(one)).toEqual(await sumOf(other))
  })
})
