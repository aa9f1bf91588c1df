import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest'
import {
  type CollectionSpec,
  type DocumentCollection,
  type DocumentStore,
  DuplicateKey,
  type Filter,
  QueryWouldScan,
  type StoredDocument,
  type StoredValue,
  type Update,
} from '../../subgraphs/common/ports/document-store.ts'

export interface OpenStore {
  readonly store: DocumentStore
  /** Closes it and opens what it kept; absent where that cannot be done. */
  readonly reopen?: () => Promise<DocumentStore>
  readonly close: () => Promise<void>
}

interface Item extends StoredDocument {
  readonly [field: string]: StoredValue | undefined
}

/**
 * What every adapter of the document-store port does, on MongoDB as on SQLite. `cannot` names the cases that a server
 * under test is known not to meet, each with the reason; mongo-java-server, for one, orders strings by UTF-16 unit and
 * takes null for an absent target.
 */
export function documentStoreContract(name: string, open: () => Promise<OpenStore>, cannot: Readonly<Record<string, string>> = {}): void {
  const test = (does: string, run: (context: TestContext) => Promise<void>) =>
    cannot[does] ? it.skip(`${does}: skipped because ${cannot[does]}`, run) : it(does, run)

  describe(`Document store: ${name}`, () => {
    let opened: OpenStore
    let created = 0

    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened.close())

    /** A collection of the test's own. */
    function collection(...indexes: CollectionSpec['indexes']): DocumentCollection<Item> {
      return opened.store.collection<Item>({ name: `items_${++created}`, indexes })
    }

    async function createCollection(documents: readonly Item[], ...indexes: CollectionSpec['indexes']): Promise<DocumentCollection<Item>> {
      const items = collection(...indexes)
      for (const document of documents) await items.insertOne(document)
      return items
    }

    const listIds = (documents: readonly Item[]) => documents.map(({ _id }) => _id)
    const at = (ms: number) => new Date(1_790_000_000_000 + ms)

    describe('documents', () => {
      test('are returned as they were stored', async () => {
        const document: Item = {
          _id: 'a',
          text: 'وثيقة عربية، and English, 日本語, 😀, "quoted", back\\slash, \n',
          empty: '',
          integers: [0, -1, 42, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
          yes: true,
          no: false,
          nothing: null,
          at: at(123),
          old: new Date(-5),
          nested: { list: [{ at: at(1) }, [], {}, null, [at(2)]], مفتاح: 'value' },
        }
        const items = await createCollection([document])
        expect(await items.findOne({ _id: 'a' })).toEqual(document)
        expect(await items.find({}, { limit: 1 })).toEqual([document])
      })

      test('are found by every read once their write has resolved', async () => {
        const items = collection({ fields: ['code'], unique: true })
        for (let i = 0; i < 50; i++) {
          const _id = `id_${i}`
          await items.insertOne({ _id, code: `c${i}`, n: 0 })
          expect(await items.findOne({ code: `c${i}` })).toMatchObject({ _id })
          await items.findOneAndUpdate({ _id }, { $inc: { n: 1 } })
          expect(await items.find({ _id: { $in: [_id] } }, { limit: 1_000 })).toMatchObject([{ n: 1 }])
        }
      })

      test('are the same in every handle of a collection', async () => {
        const spec: CollectionSpec = { name: 'items_of_two_handles', indexes: [] }
        await opened.store.collection<Item>(spec).insertOne({ _id: 'a' })
        expect(await opened.store.collection<Item>(spec).findOne({ _id: 'a' })).toEqual({ _id: 'a' })
      })

      test('are not found under a missing ID', async () => {
        const items = await createCollection([{ _id: 'a', code: 'x' }], { fields: ['code'], unique: true })
        expect(await items.findOne({ _id: 'b' })).toBeNull()
        expect(await items.findOne({ code: 'y' })).toBeNull()
        expect(await items.findOne({ _id: 'a', code: 'y' })).toBeNull()
        expect(await items.findOneAndUpdate({ _id: 'b' }, { $set: { n: 1 } })).toBeNull()
        expect(await items.findOneAndDelete({ _id: 'b' })).toBeNull()
      })
    })

    describe('filters', () => {
      const integers = [1, 2, 3, 4].map((value) => ({ value, name: String(value) }))
      const strings = ['ألف', 'باء', 'z', 'é'].sort().map((value) => ({ value, name: value }))
      const dates = [1, 2, 3, 4].map((ms) => ({ value: at(ms), name: String(ms) }))

      for (const { type, values } of [
        { type: 'integers', values: integers },
        { type: 'strings', values: strings },
        { type: 'dates', values: dates },
      ]) {
        test(`compare ${type}, in an index and as guards`, async () => {
          const items = await createCollection(
            values.map(({ value, name }) => ({ _id: name, group: 'g', value })),
            { fields: ['group', 'value'] },
          )
          await items.insertOne({ _id: 'without', group: 'g' })
          const [a, b, c, d] = values.map(({ value }) => value) as [number, number, number, number]
          const [nameA, nameB, nameC, nameD] = values.map((value) => value.name) as [string, string, string, string]
          for (const [condition, expected] of [
            [b, [nameB]],
            [{ $eq: b }, [nameB]],
            [{ $gt: b }, [nameC, nameD]],
            [{ $gte: b }, [nameB, nameC, nameD]],
            [{ $lt: b }, [nameA]],
            [{ $lte: b }, [nameA, nameB]],
            [{ $gt: a, $lt: d }, [nameB, nameC]],
            [{ $gte: c, $lte: c }, [nameC]],
          ] as const) {
            const filter: Filter = { group: 'g', value: condition }
            expect(listIds(await items.find(filter, { sort: { value: 1 }, limit: 10 }))).toEqual(expected)
            expect(await items.countDocuments(filter)).toBe(expected.length)
            const judged = await Promise.all([...values.map(({ name }) => name), 'without'].map((_id) => items.findOne({ ...filter, _id })))
            expect(listIds(judged.filter((item) => item !== null))).toEqual(expected)
          }
          expect(await items.countDocuments({ group: 'g', value: { $in: [a, d] } })).toBe(2)
          expect(await items.countDocuments({ group: 'g', value: { $in: [] } })).toBe(0)
        })
      }

      test('compare booleans', async () => {
        const items = await createCollection(
          [
            { _id: 'a', group: 'g', open: true },
            { _id: 'b', group: 'g', open: false },
          ],
          { fields: ['group', 'open'] },
        )
        expect(listIds(await items.find({ group: 'g', open: true }, { limit: 10 }))).toEqual(['a'])
        expect(await items.findOne({ _id: 'a', open: false })).toBeNull()
      })

      test('match an absent field by null', async () => {
        const items = await createCollection(
          [
            { _id: 'absent', group: 'g' },
            { _id: 'null', group: 'g', gone: null },
            { _id: 'set', group: 'g', gone: at(1) },
          ],
          { fields: ['group', 'gone'] },
        )
        expect(listIds(await items.find({ group: 'g', gone: null }, { limit: 10 }))).toEqual(['absent', 'null'])
        expect(await items.findOneAndUpdate({ _id: 'absent', 'gone.deeper': null }, { $set: { n: 1 } })).not.toBeNull()
        expect(await items.findOne({ _id: 'set', gone: null })).toBeNull()
        expect(await items.findOne({ _id: 'null', gone: { $in: [null, at(1)] } })).not.toBeNull()
      })

      test('exclude values of another type from a range', async () => {
        const items = await createCollection([
          { _id: 'text', n: '5' },
          { _id: 'date', n: at(0) },
          { _id: 'null', n: null },
        ])
        for (const _id of ['text', 'date', 'null']) {
          for (const n of [{ $gt: -1 }, { $lt: 1e15 }, { $eq: 5 }]) expect(await items.findOne({ _id, n })).toBeNull()
        }
      })

      test('reach into objects by dotted paths', async () => {
        const items = await createCollection(
          [{ _id: 'a', owner: { id: 'x', at: at(1) } }, { _id: 'b', owner: { id: 'y', at: at(2) } }, { _id: 'c' }],
          { fields: ['owner.id', 'owner.at'] },
        )
        expect(listIds(await items.find({ 'owner.id': 'y' }, { sort: { 'owner.at': 1 }, limit: 10 }))).toEqual(['b'])
        expect(await items.findOne({ _id: 'a', 'owner.at': { $lt: at(2) } })).not.toBeNull()
      })

      test('accept lists of IDs', async () => {
        const items = await createCollection(['a', 'b', 'c', 'd'].map((_id) => ({ _id, org: _id < 'c' ? 'x' : 'y' })))
        expect(listIds(await items.find({ _id: { $in: ['d', 'a', 'nobody', 'c'] } }, { limit: 10 }))).toEqual(['a', 'c', 'd'])
        expect(listIds(await items.find({ _id: { $in: ['d', 'a', 'c'] }, org: 'y' }, { limit: 1 }))).toEqual(['c'])
        expect(await items.find({ _id: { $in: [] } }, { limit: 10 })).toEqual([])
      })

      test('without an index are refused', async () => {
        const items = await createCollection([{ _id: 'a', org: 'x', n: 1, other: 1 }], { fields: ['org', 'n'] })
        for (const [filter, sort] of [
          [{ other: 1 }, {}],
          [{ n: 1 }, {}],
          [{ org: 'x', other: 1 }, { n: 1 }],
          [{ org: 'x' }, { other: 1 }],
          [{ org: 'x' }, {}],
          [{}, { other: 1 }],
        ] as const) {
          await expect(items.find(filter, { sort, limit: 10 })).rejects.toThrow(QueryWouldScan)
        }
        await expect(items.findOne({ other: 1 })).rejects.toThrow(QueryWouldScan)
        await expect(items.countDocuments({ other: 1 })).rejects.toThrow(QueryWouldScan)
        await expect(items.deleteMany({ other: 1 })).rejects.toThrow(QueryWouldScan)
        await expect(items.findOneAndUpdate({ org: 'x' }, { $set: { n: 2 } })).rejects.toThrow(QueryWouldScan)
        await expect(items.updateOne({ org: 'x' }, { $set: { n: 2 } })).rejects.toThrow(QueryWouldScan)
        await expect(items.findOneAndDelete({ other: 1 })).rejects.toThrow(QueryWouldScan)
        expect(await items.findOne({ _id: 'a' })).toMatchObject({ n: 1 })
      })
    })

    describe('sorts and pages', () => {
      test('go both ways along an index, equal values by ID', async () => {
        const items = await createCollection(
          [
            { _id: 'd', org: 'x', at: at(1) },
            { _id: 'a', org: 'x', at: at(2) },
            { _id: 'c', org: 'x', at: at(2) },
            { _id: 'b', org: 'x', at: at(3) },
            { _id: 'e', org: 'y', at: at(0) },
          ],
          { fields: ['org', 'at'] },
        )
        expect(listIds(await items.find({ org: 'x' }, { sort: { at: 1 }, limit: 10 }))).toEqual(['d', 'a', 'c', 'b'])
        expect(listIds(await items.find({ org: 'x' }, { sort: { at: -1 }, limit: 10 }))).toEqual(['b', 'c', 'a', 'd'])
        expect(listIds(await items.find({ org: 'x' }, { sort: { org: 1, at: 1 }, limit: 2 }))).toEqual(['d', 'a'])
        expect(listIds(await items.find({}, { sort: { org: -1, at: -1 }, limit: 2 }))).toEqual(['e', 'b'])
        expect(listIds(await items.find({ org: 'x', at: at(2) }, { limit: 10 }))).toEqual(['a', 'c'])
      })

      test('order strings by code point', async () => {
        const values = ['a', 'b', 'é', 'ب', '～', '😀']
        const items = await createCollection(
          values.toReversed().map((value) => ({ _id: value, value })),
          { fields: ['value'] },
        )
        expect(listIds(await items.find({}, { sort: { value: 1 }, limit: 10 }))).toEqual(values)
        expect(listIds(await items.find({}, { limit: 10 }))).toEqual(values)
        expect(await items.findOne({ _id: '😀', value: { $gt: '～' } })).not.toBeNull()
      })

      test('continue after the last ID', async () => {
        const expected = Array.from({ length: 25 }, (_, i) => `id_${String(i).padStart(2, '0')}`)
        const items = await createCollection(
          expected.map((_id) => ({ _id, org: 'x' })),
          { fields: ['org'] },
        )
        for (const filter of [{}, { org: 'x' }]) {
          const seen: string[] = []
          for (;;) {
            const page = await items.find({ ...filter, _id: { $gt: seen.at(-1) ?? '' } }, { limit: 10 })
            if (page.length === 0) break
            seen.push(...listIds(page))
          }
          expect(seen).toEqual(expected)
          const before = await items.find({ ...filter, _id: { $lt: 'id_20' } }, { sort: { _id: -1 }, limit: 3 })
          expect(listIds(before)).toEqual(['id_19', 'id_18', 'id_17'])
        }
      })

      test('contain 1,000 documents', async () => {
        const items = collection()
        const documents = Array.from({ length: 1_000 }, (_, i) => ({ _id: `id_${String(i).padStart(4, '0')}`, n: i }))
        await items.insertMissing(documents)
        expect(await items.find({}, { limit: 1_000 })).toEqual(documents)
      })
    })

    describe('updates', () => {
      const before: Item = {
        _id: 'a',
        n: 1,
        text: 'x',
        list: [1, 2, 1],
        objects: [
          { id: 'p', n: 1 },
          { id: 'q', n: 2 },
        ],
        map: { one: { n: 1 } },
      }
      for (const { does, update, expected } of [
        {
          does: '$set replaces and adds',
          update: { $set: { text: 'y', at: at(7), 'map.two.n': 2 } },
          expected: { text: 'y', at: at(7), map: { one: { n: 1 }, two: { n: 2 } } },
        },
        {
          does: '$set takes objects and lists whole',
          update: { $set: { map: { three: at(3) }, list: [] } },
          expected: { map: { three: at(3) }, list: [] },
        },
        { does: '$set to null keeps the field', update: { $set: { n: null } }, expected: { n: null } },
        {
          does: '$unset removes',
          update: { $unset: { 'map.one': '', nobody: '', 'absent.deeper': '', 'text.deeper': '' } },
          expected: { map: {} },
        },
        {
          does: '$inc adds and begins at 0',
          update: { $inc: { n: 5, 'map.one.n': -3, fresh: 2 } },
          expected: { n: 6, map: { one: { n: -2 } }, fresh: 2 },
        },
        {
          does: '$push appends and begins a list',
          update: { $push: { list: 9, fresh: at(1) } },
          expected: { list: [1, 2, 1, 9], fresh: [at(1)] },
        },
        {
          does: '$push appends each in order',
          update: { $push: { list: { $each: [8, 9] }, objects: { $each: [] } } },
          expected: { list: [1, 2, 1, 8, 9] },
        },
        { does: '$push appends a list as one element', update: { $push: { list: [3] } }, expected: { list: [1, 2, 1, [3]] } },
        { does: '$pull removes equal elements', update: { $pull: { list: 1, nobody: 'x' } }, expected: { list: [2] } },
        {
          does: '$pull removes objects by their fields',
          update: { $pull: { objects: { id: 'q', n: { $gte: 2 } } } },
          expected: { objects: [{ id: 'p', n: 1 }] },
        },
        {
          does: '$setOnInsert does nothing to a document that exists',
          update: { $setOnInsert: { n: 9 }, $set: { text: 'z' } },
          expected: { text: 'z' },
        },
        {
          does: 'operators work together',
          update: { $inc: { n: -1 }, $push: { list: 3 }, $set: { 'map.h1': 1 }, $unset: { text: '' } },
          expected: { n: 0, list: [1, 2, 1, 3], map: { one: { n: 1 }, h1: 1 }, text: undefined },
        },
      ] satisfies { does: string; update: Update; expected: Record<string, unknown> }[]) {
        test(does, async () => {
          const items = await createCollection([before])
          const after = { ...before, ...expected }
          expect(await items.findOneAndUpdate({ _id: 'a' }, update)).toEqual(after)
          expect(await items.findOne({ _id: 'a' })).toEqual(after)
        })

        test(`${does} without returning the document`, async () => {
          const items = await createCollection([before])
          expect(await items.updateOne({ _id: 'a' }, update)).toBe(true)
          expect(await items.findOne({ _id: 'a' })).toEqual({ ...before, ...expected })
        })
      }

      for (const { does, update } of [
        { does: '$inc of a string', update: { $inc: { text: 1 } } },
        { does: '$inc of null', update: { $inc: { nothing: 1 } } },
        { does: '$push to a string', update: { $push: { text: 1 } } },
        { does: '$push to null', update: { $push: { nothing: 1 } } },
        { does: '$pull from an object', update: { $pull: { map: 1 } } },
        { does: '$set inside a string', update: { $set: { 'text.deeper': 1 } } },
        { does: '$set inside null', update: { $set: { 'nothing.deeper': 1 } } },
        { does: '$inc inside an integer', update: { $inc: { 'n.deeper': 1 } } },
        { does: 'a path that is touched twice', update: { $set: { n: 2 }, $inc: { n: 1 } } },
        { does: 'a path inside another', update: { $set: { map: {} }, $inc: { 'map.one.n': 1 } } },
        { does: 'a changed _id', update: { $set: { _id: 'b' } } },
      ] satisfies { does: string; update: Update }[]) {
        test(`${does} fails and changes nothing`, async () => {
          const document = { ...before, nothing: null }
          const items = await createCollection([document])
          await expect(
            items.findOneAndUpdate({ _id: 'a' }, { ...update, $push: { list: 7, ...('$push' in update && update.$push) } }),
          ).rejects.toThrow()
          expect(await items.findOne({ _id: 'a' })).toEqual(document)
          expect(await items.findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } })).toEqual({ ...document, n: 2 })
        })
      }

      test('apply only where the guards match', async () => {
        const items = await createCollection([{ _id: 'a', available: 10, state: 'open', holds: {} }])
        const decrement = (amount: number, id: string) =>
          items.findOneAndUpdate(
            { _id: 'a', state: 'open', available: { $gte: amount }, [`holds.${id}`]: null },
            { $inc: { available: -amount }, $set: { [`holds.${id}`]: { amount } } },
          )
        expect(await decrement(6, 'hold_1')).toMatchObject({ available: 4 })
        expect(await decrement(1, 'hold_1')).toBeNull()
        expect(await decrement(5, 'hold_2')).toBeNull()
        expect(await items.updateOne({ _id: 'a', available: { $gte: 5 } }, { $inc: { available: -5 } })).toBe(false)
        expect(await items.updateOne({ _id: 'absent' }, { $inc: { available: -5 } })).toBe(false)
        expect(await decrement(4, 'hold_2')).toMatchObject({ available: 0, holds: { hold_1: { amount: 6 }, hold_2: { amount: 4 } } })
        expect(await items.findOneAndUpdate({ _id: 'a' }, { $unset: { 'holds.hold_1': '' } })).toMatchObject({
          holds: { hold_2: { amount: 4 } },
        })
      })

      test('find a document by a unique key', async () => {
        const items = await createCollection(
          [
            { _id: 'a', org: 'x', code: 'one' },
            { _id: 'b', org: 'y', code: 'one' },
          ],
          { fields: ['org', 'code'], unique: true },
        )
        expect(await items.findOneAndUpdate({ code: 'one', org: 'y' }, { $set: { n: 1 } })).toMatchObject({ _id: 'b', n: 1 })
        expect(await items.findOneAndDelete({ code: 'one', org: 'x' })).toMatchObject({ _id: 'a' })
        expect(await items.findOne({ org: 'x', code: 'one' })).toBeNull()
      })

      test('move a document in the indexes', async () => {
        const items = await createCollection([{ _id: 'a', state: 'new', at: at(1) }], { fields: ['state', 'at'] })
        await items.findOneAndUpdate({ _id: 'a' }, { $set: { state: 'done' } })
        expect(await items.countDocuments({ state: 'new' })).toBe(0)
        expect(await items.countDocuments({ state: 'done', at: { $lte: at(1) } })).toBe(1)
      })
    })

    describe('upserts', () => {
      test('insert from the equalities of the filter, $setOnInsert and the update', async () => {
        const items = collection()
        const upsert = () =>
          items.findOneAndUpdate(
            { _id: 'a', org: 'x', 'owner.id': { $eq: 'o' } },
            { $inc: { n: 2 }, $set: { at: at(1) }, $push: { list: 1 }, $unset: { nobody: '' }, $setOnInsert: { first: true } },
            { upsert: true },
          )
        const inserted = { _id: 'a', org: 'x', owner: { id: 'o' }, n: 2, at: at(1), list: [1], first: true }
        expect(await upsert()).toEqual(inserted)
        expect(await upsert()).toEqual({ ...inserted, n: 4, list: [1, 1] })
      })

      test('fail when the key exists and the guards do not match', async () => {
        const items = await createCollection([{ _id: 'a', code: 'c', n: 1 }], { fields: ['code'], unique: true })
        const update = { $inc: { n: 1 }, $setOnInsert: { _id: 'fresh' } }
        await expect(items.findOneAndUpdate({ _id: 'a', n: { $gte: 5 } }, { $inc: { n: 1 } }, { upsert: true })).rejects.toThrow(
          DuplicateKey,
        )
        await expect(items.findOneAndUpdate({ code: 'c', n: { $gte: 5 } }, update, { upsert: true })).rejects.toThrow(DuplicateKey)
        expect(await items.find({}, { limit: 10 })).toEqual([{ _id: 'a', code: 'c', n: 1 }])
      })

      test('by a unique key create one document under concurrent calls', async () => {
        const items = collection({ fields: ['code'], unique: true })
        const results = await Promise.allSettled(
          Array.from({ length: 50 }, (_, i) =>
            items.findOneAndUpdate({ code: 'c' }, { $inc: { n: 1 }, $setOnInsert: { _id: `id_${i}` } }, { upsert: true }),
          ),
        )
        const won = results.filter(({ status }) => status === 'fulfilled').length
        for (const result of results) if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(DuplicateKey)
        expect(await items.find({}, { limit: 10 })).toMatchObject([{ code: 'c', n: won }])
      })
    })

    describe('unique keys', () => {
      test('apply to IDs and unique fields', async () => {
        const items = await createCollection(
          [
            { _id: 'a', org: 'x', code: 'one' },
            { _id: 'b', org: 'x', code: 'two' },
          ],
          { fields: ['org', 'code'], unique: true },
        )
        await expect(items.insertOne({ _id: 'a', org: 'z', code: 'z' })).rejects.toThrow(DuplicateKey)
        await expect(items.insertOne({ _id: 'c', org: 'x', code: 'one' })).rejects.toThrow(DuplicateKey)
        await expect(items.findOneAndUpdate({ _id: 'b' }, { $set: { code: 'one' }, $inc: { n: 1 } })).rejects.toThrow(DuplicateKey)
        await expect(items.updateOne({ _id: 'b' }, { $set: { code: 'one' } })).rejects.toThrow(DuplicateKey)
        expect(await items.find({}, { limit: 10 })).toEqual([
          { _id: 'a', org: 'x', code: 'one' },
          { _id: 'b', org: 'x', code: 'two' },
        ])
        await items.findOneAndDelete({ _id: 'a' })
        await items.insertOne({ _id: 'c', org: 'x', code: 'one' })
      })

      test('that are sparse ignore documents without the field', async () => {
        const items = await createCollection([{ _id: 'a' }, { _id: 'b' }, { _id: 'c', key: 'k' }], {
          fields: ['key'],
          unique: true,
          sparse: true,
        })
        await expect(items.findOneAndUpdate({ _id: 'a' }, { $set: { key: 'k' } })).rejects.toThrow(DuplicateKey)
        await items.findOneAndUpdate({ _id: 'c' }, { $unset: { key: '' } })
        expect(await items.findOneAndUpdate({ _id: 'a' }, { $set: { key: 'k' } })).toEqual({ _id: 'a', key: 'k' })
        expect(await items.findOne({ key: 'k' })).toMatchObject({ _id: 'a' })
        expect(listIds(await items.find({ key: { $gte: '' } }, { sort: { key: 1 }, limit: 10 }))).toEqual(['a'])
      })
    })

    describe('many documents', () => {
      test('insertMissing preserves existing ones', async () => {
        const items = await createCollection([{ _id: 'b', n: 'old' }])
        expect(await items.insertMissing(['a', 'b', 'c'].map((_id) => ({ _id, n: 'new' })))).toBe(2)
        expect(await items.insertMissing(['a', 'b', 'c'].map((_id) => ({ _id, n: 'newer' })))).toBe(0)
        expect(await items.insertMissing([])).toBe(0)
        expect((await items.find({}, { limit: 10 })).map(({ n }) => n)).toEqual(['new', 'old', 'new'])
      })

      test('deleteMany deletes those that match the filter', async () => {
        const items = await createCollection(
          Array.from({ length: 20 }, (_, i) => ({ _id: `id_${i}`, org: i % 2 ? 'x' : 'y', at: at(i) })),
          { fields: ['org', 'at'] },
        )
        expect(await items.deleteMany({ org: 'x', at: { $lt: at(9) } })).toBe(4)
        expect(await items.deleteMany({ org: 'x', at: { $lt: at(9) } })).toBe(0)
        expect(await items.countDocuments({ org: 'x' })).toBe(6)
        expect(await items.countDocuments({ org: 'y' })).toBe(10)
        expect(await items.countDocuments({ org: 'y' }, { limit: 4 })).toBe(4)
        expect(await items.countDocuments({ org: 'y', at: { $lt: at(9) } }, { limit: 100 })).toBe(5)
        expect(await items.countDocuments({}, { limit: 12 })).toBe(12)
        expect(await items.countDocuments({}, { limit: 100 })).toBe(16)
        await expect(items.countDocuments({})).rejects.toThrow(QueryWouldScan)
        expect(await items.deleteMany({ _id: { $in: ['id_0', 'id_2', 'nobody'] }, org: 'y' })).toBe(2)
      })

      test('deleteMany comes to an end when it is repeated', async () => {
        const items = collection({ fields: ['org'] })
        for (let from = 0; from < 2_100; from += 700) {
          await items.insertMissing(Array.from({ length: 700 }, (_, i) => ({ _id: `id_${from + i}`, org: 'x' })))
        }
        let deleted = 0
        for (;;) {
          const count = await items.deleteMany({ org: 'x' })
          expect(count).toBeLessThanOrEqual(1_000)
          if (count === 0) break
          deleted += count
        }
        expect(deleted).toBe(2_100)
      })
    })

    describe('concurrency', () => {
      test('50 claimers claim 500 jobs, none twice', async () => {
        const items = collection({ fields: ['state', 'dueAt'] })
        await items.insertMissing(Array.from({ length: 500 }, (_, i) => ({ _id: `job_${i}`, state: 'queued', dueAt: at(i) })))
        const claimed: string[] = []
        const claimer = async (worker: number) => {
          for (;;) {
            const due = await items.find({ state: 'queued', dueAt: { $lte: at(1_000) } }, { sort: { dueAt: 1 }, limit: 50 })
            const job = due[worker % due.length]
            if (!job) return
            const won = await items.findOneAndUpdate({ _id: job._id, state: 'queued' }, { $set: { state: 'leased', by: worker } })
            if (won) claimed.push(won._id)
          }
        }
        await Promise.all(Array.from({ length: 50 }, (_, worker) => claimer(worker)))
        expect(claimed).toHaveLength(500)
        expect(new Set(claimed).size).toBe(500)
      })

      test('1,000 guarded decrements of 300 succeed 300 times', async () => {
        const items = await createCollection([{ _id: 'w', left: 300, spent: 0 }])
        const results = await Promise.all(
          Array.from({ length: 1_000 }, () => items.findOneAndUpdate({ _id: 'w', left: { $gte: 1 } }, { $inc: { left: -1, spent: 1 } })),
        )
        expect(results.filter((result) => result !== null)).toHaveLength(300)
        expect(await items.findOne({ _id: 'w' })).toEqual({ _id: 'w', left: 0, spent: 300 })
      })
    })

    test('responds to a ping', async () => {
      await opened.store.ping(AbortSignal.timeout(30_000))
      await expect(opened.store.ping(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
    })

    test('preserves everything when it is closed and reopened', async ({ skip }) => {
      const mine = await open()
      if (!mine.reopen) {
        await mine.close()
        skip('this adapter keeps nothing in a test')
        return
      }
      const spec: CollectionSpec = { name: 'kept', indexes: [{ fields: ['code'], unique: true }] }
      await mine.store.collection<Item>(spec).insertOne({ _id: 'a', code: 'c', at: at(1) })
      const again = (await mine.reopen()).collection<Item>(spec)
      expect(await again.findOne({ code: 'c' })).toEqual({ _id: 'a', code: 'c', at: at(1) })
      await expect(again.insertOne({ _id: 'b', code: 'c' })).rejects.toThrow(DuplicateKey)
      await mine.close()
    })
  })
}
