import { describe, expect, it } from 'vitest'
import { cutCitations } from './citations.ts'
import { type Hit, toFilter, toGroups, toInput } from './search.ts'

describe('Search request', () => {
  it('is empty without a query', () => expect(toInput('col_1', { query: '  ' })).toBeNull())

  it('uses the reranker of the collection unless the reader names one', () => {
    expect(toInput('col_1', { query: ' leave ' })).not.toHaveProperty('rerankModel')
    expect(toInput('col_1', { query: 'leave', rerank: 'none' })).toMatchObject({ rerankModel: null })
    expect(toInput('col_1', { query: ' leave ', rerank: 'rerank-1', group: true })).toMatchObject({
      query: 'leave',
      rerankModel: 'rerank-1',
      groupBy: 'DOCUMENT',
    })
  })

  it.each([
    [{}, null],
    [{ language: 'ar' }, { op: 'eq', field: 'language', value: 'ar' }],
    [
      { field: 'dept', value: 'HR' },
      { op: 'eq', field: 'metadata.dept', value: 'HR' },
    ],
    [{ field: 'dept' }, null],
    [
      { file: 'لائحة', field: 'year', value: '2026' },
      {
        op: 'and',
        filters: [
          { op: 'contains', field: 'file_name', value: 'لائحة' },
          {
            op: 'or',
            filters: [
              { op: 'eq', field: 'metadata.year', value: '2026' },
              { op: 'eq', field: 'metadata.year', value: 2026 },
            ],
          },
        ],
      },
    ],
  ] as const)('filters by %j', (filters, filter) => expect(toFilter(filters)).toEqual(filter))
})

it('groups hits by document in the order of the result, with their ranks', () => {
  const hit = (document: string) => ({ chunk: { document: { id: document } } }) as Hit
  expect(toGroups([hit('a'), hit('b'), hit('a')]).map(({ document, hits }) => [document.id, hits.map(({ rank }) => rank)])).toEqual([
    ['a', [1, 3]],
    ['b', [2]],
  ])
})

it.each([
  ['Thirty days [1].', 'Thirty days |1|.'],
  ['ثلاثون يومًا [٢][1]', 'ثلاثون يومًا |2||1|'],
  ['See [3] and [0] and [x]', 'See [3] and [0] and [x]'],
  ['Both [1, 2].', 'Both |1||2|.'],
  ['', ''],
])('finds the citations of %j', (text, expected) => {
  expect(
    cutCitations(text, 2)
      .map((piece) => (typeof piece === 'number' ? `|${piece}|` : piece))
      .join(''),
  ).toBe(expected)
})
