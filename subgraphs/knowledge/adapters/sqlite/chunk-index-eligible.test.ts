import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'
import { eligibleChunks } from './chunk-index-eligible.ts'
import { findCollection, nameTables, openReader } from './tables/chunk-index-schema.ts'

const folder = temporaryFolder()
const file = join(folder, 'index.sqlite')

const LONG = 'v'.repeat(500)
/**
 * Number of documents of the first collection, and of chunks of the second one's document. It exceeds the rows between
 * two time checks of a filter.
 */
const MANY = 3_000
const ODD_KEY = 'metadata.a"b\\c.d[0]'

beforeAll(async () => {
  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  const put = async (collectionId: string, documentId: string, chunks: number, from: number, attributes: Record<string, string | number>) =>
    index.put(
      { organizationId: 'org_a', collectionId, documentId, generation: 'g', attributes },
      Array.from({ length: chunks }, (_, i) => ({
        chunkId: `${documentId}_${from + i}`,
        ordinal: from + i,
        text: '',
        context: '',
        headingPath: [],
        pageStart: 1,
        pageEnd: 1,
        charStart: 0,
        charEnd: 0,
        language: null,
        vector: Float32Array.of(1, 0),
        words: [],
        grams: [],
      })),
    )
  for (const collectionId of ['col_documents', 'col_chunks', 'col_odd'])
    await index.createCollection({ organizationId: 'org_a', collectionId, dimensions: 2 })
  await Promise.all(Array.from({ length: MANY }, (_, i) => put('col_documents', `doc_${i}`, 1, 0, { file_name: LONG })))
  for (let from = 0; from < MANY; from += 250) await put('col_chunks', 'doc_1', 250, from, { file_name: LONG })
  await put('col_odd', 'doc_1', 1, 0, { [ODD_KEY]: `${LONG}İ k`, 'metadata.n': 2 })
})

function eligible(collectionId: string, filter: SearchFilter, maxCpuMs?: number): ReadonlySet<number> {
  const db = openReader(file)
  try {
    return eligibleChunks(db, nameTables(findCollection(db, collectionId)!), filter, maxCpuMs)
  } finally {
    db.close()
  }
}

const contains = (value: string, field = 'file_name') => ({ op: 'contains', field, value }) as const
/** Each chunk is tested by the text of its document, then by its page. */
const mixed: SearchFilter = { op: 'or', filters: [contains(`${LONG.slice(0, 90)}x`), { op: 'eq', field: 'page', value: 9 }] }

it.each<[string, string, SearchFilter, number]>([
  ['of documents, none of which passes', 'col_documents', contains('x'), 0],
  ['of documents, all of which pass', 'col_documents', contains('v'), MANY],
  ['of the chunks of one document', 'col_chunks', mixed, 0],
])('limits the work of a filter %s', (_, collectionId, filter, found) => {
  const tooLong = { name: 'Refusal', data: { code: 'operation_too_complex' } }
  expect(() => eligible(collectionId, filter, 0)).toThrow(expect.objectContaining(tooLong))
  expect(eligible(collectionId, filter).size).toBe(found)
})

it('counts anew for each filter', () => {
  const db = openReader(file)
  const tables = nameTables(findCollection(db, 'col_documents')!)
  expect(() => eligibleChunks(db, tables, contains('v'), 0)).toThrow('too long')
  expect(eligibleChunks(db, tables, contains('v')).size).toBe(MANY)
  db.close()
})

it('accepts any characters in a field name, and folds only ASCII case', () => {
  expect(eligible('col_odd', contains('Vİ K', ODD_KEY)).size).toBe(1)
  expect(eligible('col_odd', contains('vi k', ODD_KEY)).size).toBe(0)
  // In Unicode, the lower case of the Kelvin sign is `k`.
  expect(eligible('col_odd', contains('\u212a', ODD_KEY)).size).toBe(0)
})

it.each<[string, readonly (string | number | boolean)[], number]>([
  ['of several types', [true, 'two', 2], 1],
  ['of another type', ['2', true, false], 0],
])('compares a value with a list %s', (_, values, found) => {
  const filter: SearchFilter = { op: 'in', field: 'metadata.n', values }
  expect(eligible('col_odd', filter).size).toBe(found)
  expect(eligible('col_odd', { op: 'not', filter }).size).toBe(1 - found)
  expect(eligible('col_odd', { op: 'not', filter: { ...filter, field: 'metadata.none' } }).size).toBe(1)
})
