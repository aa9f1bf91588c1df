import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { KisError } from '../../../errors.ts'
import {
  type CollectionSpec,
  type DocumentCollection,
  type DocumentStore,
  DuplicateKey,
  type Filter,
} from '../../../ports/document-store.ts'
import { silentLog } from '../../../process/log.ts'
import { meets, toTests } from '../../documents/filter.ts'
import { type StoredObject, toStored } from '../../documents/stored-value.ts'
import { openSqliteDocumentStore } from './document-store.ts'

/** Tests also use values that the types of the port forbid. */
type Anything = { _id: string; [field: string]: unknown }
type Collection = DocumentCollection<Anything> & DocumentCollection<never>

let folder: string
let store: DocumentStore
let created = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kis-sqlite-'))
  store = await openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
})
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

function collection(...indexes: CollectionSpec['indexes']): Collection {
  return store.collection<Anything>({ name: `items_${++created}`, indexes }) as Collection
}

describe('Document store refuses a defect of the caller', () => {
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  for (const { what, value } of [
    { what: 'a fraction', value: 0.5 },
    { what: 'an unsafe integer', value: 2 ** 53 },
    { what: 'NaN', value: Number.NaN },
    { what: 'infinity', value: Number.POSITIVE_INFINITY },
    { what: 'undefined', value: undefined },
    { what: 'a function', value: () => 1 },
    { what: 'a bigint', value: 1n },
    { what: 'a symbol', value: Symbol('s') },
    { what: 'an invalid date', value: new Date(Number.NaN) },
    { what: 'a map', value: new Map() },
    { what: 'bytes', value: new Uint8Array(1) },
    { what: 'a field that begins with $', value: { $date: 5 } },
    { what: 'a field with a dot', value: { 'a.b': 1 } },
    { what: 'an empty field', value: { '': 1 } },
    { what: 'a field with a NUL', value: { 'a\0': 1 } },
    { what: 'a field named __proto__', value: JSON.parse('{"__proto__":{"n":1}}') },
    { what: 'an object that contains itself', value: cyclic },
  ]) {
    it(`${what}, in a document, an update and nested`, async () => {
      const items = collection()
      await items.insertOne({ _id: 'a' })
      for (const bad of [value, [{ inner: value }]]) {
        await expect(items.insertOne({ _id: 'b', bad })).rejects.toThrow(TypeError)
        await expect(items.insertMissing([{ _id: 'c' }, { _id: 'd', bad }])).rejects.toThrow(TypeError)
        for (const update of [{ $set: { bad } }, { $push: { bad } }, { $setOnInsert: { bad } }]) {
          await expect(items.findOneAndUpdate({ _id: 'a' }, update as never)).rejects.toThrow(TypeError)
        }
      }
      expect(await items.find({}, { limit: 10 })).toEqual([{ _id: 'a' }])
    })
  }

  it('an array or an object in an indexed field', async () => {
    const items = collection({ fields: ['owner.id'] })
    await items.insertOne({ _id: 'a', owner: { id: 'x' } })
    for (const id of [['x'], { deep: 1 }]) {
      await expect(items.insertOne({ _id: 'b', owner: { id } })).rejects.toThrow(/index/)
      await expect(items.findOneAndUpdate({ _id: 'a' }, { $set: { 'owner.id': id as never } })).rejects.toThrow(/index/)
    }
    await expect(items.insertOne({ _id: 'b', owner: [{ id: 'x' }] })).rejects.toThrow(/array/)
    expect(await items.find({}, { limit: 10 })).toEqual([{ _id: 'a', owner: { id: 'x' } }])
  })

  it('a document without a field of a unique index that is not sparse', async () => {
    const items = collection({ fields: ['org', 'code'], unique: true })
    for (const document of [{ org: 'x' }, { org: 'x', code: null }, {}]) {
      await expect(items.insertOne({ _id: 'a', ...document })).rejects.toThrow(/index/)
    }
    await items.insertOne({ _id: 'a', org: 'x', code: 'y' })
    await expect(items.findOneAndUpdate({ _id: 'a' }, { $unset: { code: '' } })).rejects.toThrow(/index/)
  })

  it('a document or an upsert without a string _id', async () => {
    const items = collection({ fields: ['code'], unique: true })
    for (const _id of ['', 5, undefined]) await expect(items.insertOne({ _id, code: 'c' } as never)).rejects.toThrow(TypeError)
    await expect(items.findOneAndUpdate({ code: 'c' }, { $set: { n: 1 } }, { upsert: true })).rejects.toThrow(/_id/)
    await expect(items.findOne({ _id: 5 })).rejects.toThrow(TypeError)
  })

  it('filters and updates outside the port', async () => {
    const items = collection()
    await items.insertOne({ _id: 'a', tags: ['x'], n: Number.MAX_SAFE_INTEGER })
    for (const n of [
      { $ne: 1 },
      { $exists: true },
      {},
      { $gt: null },
      { $gt: 1, $lt: 'x' },
      { $in: 'x' },
      ['x'],
      { $in: [[1]] },
      { $eq: {} },
      { $gt: 0.5 },
    ]) {
      await expect(items.findOne({ _id: 'a', n: n as never })).rejects.toThrow(TypeError)
    }
    await expect(items.findOne({ _id: 'a', n: { $in: Array.from({ length: 1_001 }, (_, i) => i) } })).rejects.toThrow(TypeError)
    await expect(items.findOne({ _id: 'a', tags: 'x' })).rejects.toThrow(/array/)
    for (const update of [
      {},
      { $rename: { n: 'm' } },
      { n: 1 },
      { $inc: { n: 1 } },
      { $inc: { n: '1' } },
      { $push: { tags: { $each: ['y'], $slice: 1 } } },
      { $set: { 'tags.0': 'y' } },
      { $set: { 'a..b': 1 } },
      { $set: { 'a.$': 1 } },
      { $pull: { tags: { $in: ['x'] } } },
    ]) {
      await expect(items.findOneAndUpdate({ _id: 'a' }, update as never)).rejects.toThrow()
    }
    for (const limit of [0, -1, 1.5, 1_001]) await expect(items.find({}, { limit })).rejects.toThrow(RangeError)
    await expect(items.find({}, { sort: { _id: 1, n: -1 }, limit: 1 })).rejects.toThrow(TypeError)
    expect(await items.findOne({ _id: 'a' })).toEqual({ _id: 'a', tags: ['x'], n: Number.MAX_SAFE_INTEGER })
  })

  it('a collection declared twice in different ways, or with an invalid name or path', () => {
    const spec = { name: 'declared', indexes: [{ fields: ['a'] }] }
    store.collection(spec)
    expect(() => store.collection({ ...spec, indexes: [] })).toThrow(/other indexes/)
    expect(() => store.collection({ name: 'Bad"name', indexes: [] })).toThrow(TypeError)
    expect(() => store.collection({ name: 'good', indexes: [{ fields: ["a') --"] }] })).toThrow(TypeError)
    expect(() => store.collection({ name: 'good', indexes: [{ fields: [] }] })).toThrow(TypeError)
  })

  it('an indexed field that holds values of several types', async () => {
    const items = collection({ fields: ['value'] })
    await items.insertOne({ _id: 'a', value: 1 })
    await items.insertOne({ _id: 'b', value: true })
    await expect(items.find({ value: 1 }, { limit: 10 })).rejects.toThrow(/several types/)
  })
})

it('an index finds the documents that match the guard, in the order that it defines', async () => {
  const text = fc.constantFrom('', 'a', 'b', 'ب', 'é', '～', '😀', 'a\0b')
  const values = [fc.integer({ min: -3, max: 3 }), text, fc.integer({ min: -3, max: 3 }).map((ms) => new Date(ms))]
  const createRanges = <T>(value: fc.Arbitrary<T>) =>
    fc.oneof(
      value.map(($eq) => ({ $eq })),
      fc.constant(null),
      fc.record({ $gt: value, $lt: value }, { requiredKeys: [] }).filter((range) => Object.keys(range).length > 0),
      fc.record({ $gte: value, $lte: value }, { requiredKeys: [] }).filter((range) => Object.keys(range).length > 0),
      fc.array(value, { maxLength: 3 }).map(($in) => ({ $in })),
    )
  const cases = fc.oneof(
    ...values.map((value) =>
      fc.record({
        stored: fc.array(fc.option(value as fc.Arbitrary<unknown>), { maxLength: 8 }),
        condition: createRanges(value as fc.Arbitrary<unknown>),
      }),
    ),
  )
  const items = collection({ fields: ['group', 'value'] })
  let run = 0
  await fc.assert(
    fc.asyncProperty(cases, fc.constantFrom(1 as const, -1 as const), async ({ stored, condition }, direction) => {
      const group = `g_${++run}`
      const documents = stored.map((value, i) =>
        value === null && i % 2 ? { _id: `${group}_${i}`, group } : { _id: `${group}_${i}`, group, value },
      )
      await items.insertMissing(documents)
      const filter = { group, value: condition } as Filter
      const expected = documents
        .filter((document) => meets(toStored(document, 'a document') as StoredObject, toTests(filter)))
        .map(({ _id }) => _id)
      expect(await items.countDocuments(filter)).toBe(expected.length)
      const isList = condition !== null && '$in' in condition
      const isFixed = condition === null || '$eq' in condition
      if (!isList) {
        const found = (await items.find(filter, { sort: { value: direction }, limit: 10 })).map(({ _id }) => _id)
        expect(found.toSorted()).toEqual(expected)
        if (isFixed) expect(found).toEqual(direction === 1 ? expected : expected.toReversed())
      }
      expect(await items.deleteMany(filter)).toBe(expected.length)
    }),
    { numRuns: 150 },
  )
})

it('a write that fails leaves the others of its commit intact', async () => {
  const items = collection({ fields: ['code'], unique: true })
  await items.insertOne({ _id: 'first', code: 'taken', text: 'x' })
  const results = await Promise.allSettled(
    Array.from({ length: 60 }, (_, i) => {
      if (i % 3 === 0) return items.insertOne({ _id: `id_${i}`, code: 'taken' })
      if (i % 3 === 1) return items.findOneAndUpdate({ _id: 'first' }, { $push: { list: i }, $inc: { text: 1 } })
      return items.insertOne({ _id: `id_${i}`, code: `c_${i}` })
    }),
  )
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
  expect(await items.findOne({ _id: 'first' })).toEqual({ _id: 'first', code: 'taken', text: 'x' })
  expect(await items.find({ _id: { $gt: 'id' } }, { limit: 100 })).toHaveLength(20)
})

it('a document read repeatedly is the stored one, whatever callers do with theirs', async () => {
  const items = collection({ fields: ['at'] })
  await items.insertOne({ _id: 'a', n: 1, at: new Date(5), below: { tags: ['x'] } })
  for (let read = 0; read < 4; read++) {
    const [found] = await items.find({ at: new Date(5) }, { limit: 1 })
    expect(found).toEqual({ _id: 'a', n: 1, at: new Date(5), below: { tags: ['x'] } })
    Object.assign(found!, { n: 2 })
  }
  await items.updateOne({ _id: 'a' }, { $set: { n: 3 } })
  expect(await items.findOne({ _id: 'a' })).toMatchObject({ n: 3 })
  await items.findOneAndDelete({ _id: 'a' })
  await items.insertOne({ _id: 'a', n: 4 })
  for (let read = 0; read < 3; read++) expect(await items.findOne({ _id: 'a' })).toEqual({ _id: 'a', n: 4 })
})

it('insertMissing reports another unique key that is taken, and inserts the rest', async () => {
  const items = collection({ fields: ['code'], unique: true })
  await items.insertOne({ _id: 'a', code: 'taken' })
  await expect(
    items.insertMissing([
      { _id: 'b', code: 'taken' },
      { _id: 'c', code: 'free' },
    ]),
  ).rejects.toThrow(DuplicateKey)
  expect((await items.find({}, { limit: 10 })).map(({ _id }) => _id)).toEqual(['a', 'c'])
})

it('a lone surrogate is stored as the replacement character, and found', async () => {
  const items = collection({ fields: ['code'] })
  await items.insertOne({ _id: 'a', code: 'x\ud800' })
  expect(await items.findOne({ code: 'x\ud800' })).toEqual({ _id: 'a', code: 'x\ufffd' })
})

it('names of built-in properties are ordinary fields', async () => {
  const items = collection()
  await items.insertOne({ _id: 'a' })
  expect(await items.findOne({ _id: 'a', constructor: null, 'toString.name': null } as Filter)).not.toBeNull()
  const after = await items.findOneAndUpdate({ _id: 'a' }, { $inc: { 'constructor.n': 1 }, $push: { hasOwnProperty: 1 } })
  expect(after).toEqual({ _id: 'a', constructor: { n: 1 }, hasOwnProperty: [1] })
})

it('a loop of short reads yields the event loop to others', async () => {
  const items = collection()
  await items.insertMissing(Array.from({ length: 100 }, (_, i) => ({ _id: `id_${i}`, text: 'x'.repeat(5_000) })) as never)
  let rounds = 0
  let next = setImmediate(function count() {
    rounds++
    next = setImmediate(count)
  })
  onTestFinished(() => clearImmediate(next))
  for (let i = 0; i < 50; i++) expect(await items.find({}, { limit: 100 })).toHaveLength(100)
  expect(rounds).toBeGreaterThan(2)
})

it('long reads of one organization do not keep another waiting, in a limited queue', async () => {
  const items = collection({ fields: ['organizationId'] })
  const documents = (organizationId: string) => Array.from({ length: 500 }, (_, i) => ({ _id: `${organizationId} ${i}`, organizationId }))
  for (const organizationId of ['org_a', 'org_b']) await items.insertMissing(documents(organizationId) as never)
  const read = (organizationId: string) => items.find({ organizationId }, { limit: 1_000 })
  let done = 0
  const many = Array.from({ length: 200 }, () => read('org_a').then(() => done++))
  expect(await read('org_b')).toHaveLength(500)
  expect(done).toBeLessThan(20)
  await Promise.all(many)
  const codes = await Promise.all(
    Array.from({ length: 1_010 }, () =>
      read('org_a').then(
        () => 'read',
        ({ code }) => code,
      ),
    ),
  )
  expect(codes.filter((code) => code === 'service_unavailable')).toHaveLength(8)
})

it('a closed store has saved earlier writes, and refuses later ones', async () => {
  const file = join(folder, 'closing.sqlite')
  const spec: CollectionSpec = { name: 'items', indexes: [] }
  const closing = await openSqliteDocumentStore({ file, log: silentLog })
  const items = closing.collection<Anything & never>(spec) as unknown as Collection
  await items.insertOne({ _id: 'first' })
  const pending = Array.from({ length: 50 }, (_, i) => items.insertOne({ _id: `id_${i}` }))
  const closed = closing[Symbol.asyncDispose]()
  const stored = (await Promise.allSettled(pending)).filter(({ status }) => status === 'fulfilled').length
  await closed
  for (const call of [
    items.findOne({ _id: 'first' }),
    items.find({}, { limit: 500 }),
    items.insertOne({ _id: 'late' }),
    closing.ping(AbortSignal.timeout(30_000)),
  ]) {
    await expect(call).rejects.toThrow(KisError)
  }
  await using again = await openSqliteDocumentStore({ file, log: silentLog })
  expect(await (again.collection(spec) as unknown as Collection).find({}, { limit: 100 })).toHaveLength(1 + stored)
})
