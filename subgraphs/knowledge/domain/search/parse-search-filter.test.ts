import { describe, expect, it } from 'vitest'
import { parseSearchFilter } from './parse-search-filter.ts'

const nested = (levels: number): unknown => (levels === 1 ? { page: 1 } : { op: 'not', filter: nested(levels - 1) })
const CONTAINS = { op: 'contains', field: 'file_name', value: 'x' }
const PAGE_1 = { op: 'eq', field: 'page', value: 1 }

describe('Search filter parser', () => {
  for (const [what, json, expected] of [
    ['no filter', null, null],
    ['an absent filter', undefined, null],
    ['one field', { page: 1 }, PAGE_1],
    [
      'several fields as all of them',
      { page: 1, 'metadata.draft': true },
      { op: 'and', filters: [PAGE_1, { op: 'eq', field: 'metadata.draft', value: true }] },
    ],
    ['a comparison', { op: 'gte', field: 'metadata.year', value: 2020 }, { op: 'gte', field: 'metadata.year', value: 2020 }],
    ['a list', { op: 'in', field: 'language', value: ['ar', 'en'] }, { op: 'in', field: 'language', values: ['ar', 'en'] }],
    ['shorthand inside or', { op: 'or', filters: [{ page: 1 }, PAGE_1] }, { op: 'or', filters: [PAGE_1, PAGE_1] }],
    ['not with filter', { op: 'not', filter: { page: 1 } }, { op: 'not', filter: PAGE_1 }],
    ['not with one of filters', { op: 'not', filters: [{ page: 1 }] }, { op: 'not', filter: PAGE_1 }],
    ['an ISO time', { created_at: '2026-01-31T12:00:00Z' }, { op: 'eq', field: 'created_at', value: Date.UTC(2026, 0, 31, 12) }],
    ['Unix seconds', { op: 'lt', field: 'created_at', value: 1.5 }, { op: 'lt', field: 'created_at', value: 1500 }],
    ['five levels', nested(5), expect.anything()],
    ['five texts that contain a part', { op: 'or', filters: Array(5).fill(CONTAINS) }, { op: 'or', filters: Array(5).fill(CONTAINS) }],
  ] as const) {
    it(`reads ${what}`, () => expect(parseSearchFilter(json)).toEqual(expected))
  }

  for (const [what, json, code, param] of [
    ['a text', 'page', 'invalid_type', 'filter'],
    ['a list of filters', [], 'invalid_type', 'filter'],
    ['an empty object', {}, 'invalid_request', 'filter'],
    ['an unknown field', { author: 'x' }, 'unsupported_value', 'filter.author'],
    ['an inherited name', { op: 'eq', field: 'constructor', value: 'x' }, 'unsupported_value', 'filter.field'],
    [
      'an unknown operator deep inside',
      { op: 'and', filters: [{ page: 1 }, { op: 'like', field: 'page', value: 1 }] },
      'unsupported_value',
      'filter.filters[1].op',
    ],
    ['a value of another type', { page: 'one' }, 'invalid_type', 'filter.page'],
    ['null as a value', { language: null }, 'invalid_type', 'filter.language'],
    ['a missing value', { op: 'eq', field: 'page' }, 'missing_required_parameter', 'filter.value'],
    ['a missing field', { op: 'eq', value: 1 }, 'missing_required_parameter', 'filter.field'],
    ['a missing filter', { op: 'not' }, 'missing_required_parameter', 'filter.filter'],
    ['a range comparison of booleans', { op: 'gt', field: 'metadata.x', value: true }, 'invalid_type', 'filter.value'],
    ['an invalid time', { created_at: 'yesterday' }, 'invalid_type', 'filter.created_at'],
    ['a list item that does not fit', { op: 'in', field: 'page', value: [1, 'b'] }, 'invalid_type', 'filter.value[1]'],
    ['an empty list', { op: 'or', filters: [] }, 'invalid_request', 'filter.filters'],
    ['not with two filters', { op: 'not', filters: [{ page: 1 }, { page: 2 }] }, 'invalid_request', 'filter.filters'],
    ['an extra key', { op: 'eq', field: 'page', value: 1, boost: 2 }, 'invalid_request', 'filter.boost'],
    ['six levels', nested(6), 'operation_too_complex', 'filter.filter.filter.filter.filter.filter'],
    [
      '51 conditions',
      { op: 'or', filters: [{ op: 'in', field: 'page', value: Array(50).fill(1) }, { page: 1 }] },
      'operation_too_complex',
      'filter.filters[1]',
    ],
    [
      'a sixth text that contains a part',
      {
        op: 'and',
        filters: [
          { op: 'or', filters: Array(5).fill(CONTAINS) },
          { op: 'not', filter: CONTAINS },
        ],
      },
      'operation_too_complex',
      'filter.filters[1].filter',
    ],
    ['a long list', { op: 'in', field: 'page', value: Array(51).fill(1) }, 'array_above_max_length', 'filter.value'],
    ['a long value', { file_name: 'x'.repeat(1025) }, 'string_above_max_length', 'filter.file_name'],
  ] as const) {
    it(`refuses ${what}, and names the path`, () => {
      expect(() => parseSearchFilter(json)).toThrow(expect.objectContaining({ name: 'KisError', code, param }))
    })
  }
})
