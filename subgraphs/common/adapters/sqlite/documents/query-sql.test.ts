import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import type { CollectionSpec, Filter } from '../../../ports/document-store.ts'
import { toTests } from '../../documents/filter.ts'
import { chooseIndex, chooseKey } from '../../documents/index-choice.ts'
import { limited, ordered, selectSql } from './query-sql.ts'
import { toSchema } from './tables.ts'

const spec: CollectionSpec = {
  name: 'items',
  indexes: [
    { fields: ['org', 'code'], unique: true },
    { fields: ['org', 'status', 'dueAt'] },
    { fields: ['org', 'createdAt', 'status'] },
    { fields: ['org'] },
    { fields: ['job.dueAt'], sparse: true },
    { fields: ['key'], unique: true, sparse: true },
  ],
}
const database = new DatabaseSync(':memory:')
for (const statement of toSchema(spec)) database.exec(statement)

/** Returns SQLite's plan of the query, without the steps for lists of parameters. */
function explainPlan(filter: Filter, sort: readonly string[] | undefined, direction: 1 | -1 = 1): readonly string[] | undefined {
  const access = chooseIndex(spec, toTests(filter), sort)
  if (!access) return undefined
  const select = selectSql('doc', spec, access)
  const { text } = limited(sort ? ordered(select, access, direction) : select, 10)
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all()
  return steps.map(({ detail }) => String(detail)).filter((detail) => !/^LIST SUBQUERY|json_each/.test(detail))
}

const now = new Date()

describe('Query plan: one index search in order', () => {
  for (const { filter, sort = [], index } of [
    { filter: { _id: 'a' }, index: 'PRIMARY KEY (id=?)' },
    { filter: { _id: 'a', other: 1 }, index: 'PRIMARY KEY (id=?)' },
    { filter: { _id: { $in: ['a', 'b'] }, other: 1 }, index: 'PRIMARY KEY (id=?)' },
    { filter: { _id: { $gt: 'a' } }, index: 'PRIMARY KEY (id>?)' },
    { filter: { _id: { $gt: 'a', $lt: 'b' } }, index: 'PRIMARY KEY (id>? AND id<?)' },
    { filter: { org: 'x', code: 'y' }, index: 'unique (<expr>=? AND <expr>=?)' },
    { filter: { org: 'x', code: 'y', other: 1 }, index: 'unique (<expr>=? AND <expr>=?)' },
    { filter: { org: 'x' }, index: '"items(org)" (<expr>=?)' },
    { filter: { org: 'x', _id: { $gt: 'a' } }, index: '(<expr>=? AND id>?)' },
    { filter: { org: 'x', status: 's', dueAt: now }, index: '(<expr>=? AND <expr>=? AND <expr>=?)' },
    { filter: { org: 'x', status: 's', dueAt: { $lte: now } }, sort: ['dueAt'], index: '(<expr>=? AND <expr>=? AND <expr><?)' },
    { filter: { org: 'x', status: 's' }, sort: ['dueAt'], index: '(<expr>=? AND <expr>=?)' },
    { filter: { org: 'x', status: null }, sort: ['dueAt'], index: '(<expr>=? AND <expr>=?)' },
    { filter: { org: 'x', status: 's', createdAt: { $gte: now } }, sort: ['createdAt'], index: '(<expr>=? AND <expr>>? AND <expr><?)' },
    { filter: { org: 'x' }, sort: ['createdAt', 'status'], index: '(<expr>=?)' },
    { filter: { org: { $gte: 'x' } }, sort: ['org'], index: '"items(org)" (<expr>>?)' },
    { filter: { 'job.dueAt': { $lte: now } }, sort: ['job.dueAt'], index: 'sparse (<expr><?)' },
    { filter: { key: 'k' }, index: 'unique sparse (<expr>=?)' },
  ] satisfies { filter: Filter; sort?: string[]; index: string }[]) {
    it(`${JSON.stringify(filter)} by ${sort.join() || '_id'}`, () => {
      for (const direction of [1, -1] as const) {
        const plan = explainPlan(filter, sort, direction)
        expect(plan).toHaveLength(1)
        expect(plan![0]!.replaceAll('"', '')).toContain(index.replaceAll('"', ''))
        expect(plan![0]).toMatch(/^SEARCH /)
      }
      expect(explainPlan(filter, undefined)).toEqual([expect.stringMatching(/^SEARCH /)])
    })
  }

  it('a list of values uses a search if no order is requested', () => {
    expect(explainPlan({ org: 'x', status: { $in: ['a', 'b'] } }, undefined)).toEqual([expect.stringMatching(/^SEARCH /)])
  })

  it('a whole collection is read along an index only', () => {
    expect(explainPlan({}, [])).toEqual(['SCAN documents_items'])
    expect(explainPlan({}, ['org', 'status', 'dueAt'])).toEqual([expect.stringContaining('USING INDEX items(org,status,dueAt)')])
  })
})

describe('Query plan: refused without an index', () => {
  for (const { filter, sort } of [
    { filter: { other: 1 }, sort: [] },
    { filter: { status: 's' }, sort: [] },
    { filter: { org: 'x', other: 1 }, sort: [] },
    { filter: { org: 'x' }, sort: ['other'] },
    { filter: { org: 'x' }, sort: ['dueAt'] },
    { filter: { org: 'x' }, sort: ['createdAt'] },
    { filter: { org: 'x', createdAt: { $gt: now } }, sort: [] },
    { filter: { org: 'x', status: { $in: ['a', 'b'] } }, sort: ['dueAt'] },
    { filter: { org: 'x', status: { $in: ['a', null] } }, sort: undefined },
    { filter: { key: null }, sort: [] },
    { filter: { 'job.dueAt': null }, sort: [] },
    { filter: {}, sort: ['job.dueAt'] },
    { filter: {}, sort: undefined },
  ] satisfies { filter: Filter; sort: string[] | undefined }[]) {
    it(`${JSON.stringify(filter)} by ${sort ? sort.join() || '_id' : 'nothing'}`, () => expect(explainPlan(filter, sort)).toBeUndefined())
  }
})

it('a write uses a unique key', () => {
  expect(chooseKey(spec, toTests({ org: 'x', code: 'y', n: { $gt: 1 } }))?.judged).toHaveLength(1)
  for (const filter of [{ org: 'x' }, { org: 'x', code: null }, { _id: { $in: ['a'] } }, { org: 'x', code: { $gt: 'a' } }, {}]) {
    expect(chooseKey(spec, toTests(filter))).toBeUndefined()
  }
})
