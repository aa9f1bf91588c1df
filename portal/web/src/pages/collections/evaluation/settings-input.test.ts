import { expect, it } from 'vitest'
import { inputOf, isRepeated, readLabel } from './settings-input.ts'

it('creates a label for each search setting that can be parsed again', () => {
  for (const [reranker, read] of [
    ['none', 'none'],
    ['vendor/rerank + 2', 'vendor/rerank + 2'],
  ] as const)
    expect(readLabel(inputOf({ key: 0, mode: 'VECTOR', reranker }).label!)).toEqual({ mode: 'VECTOR', reranker: read })
  expect(inputOf({ key: 0, mode: 'HYBRID', reranker: 'default' })).toEqual({ mode: 'HYBRID' })
  expect(readLabel('hybrid')).toEqual({ mode: 'HYBRID', reranker: null })
  expect(readLabel('My own')).toBeNull()
  const own = { label: 'My own', filter: { language: 'ar' }, lexicalWeight: 2 }
  expect(inputOf({ key: 0, mode: 'HYBRID', reranker: 'none', own })).toEqual({ mode: 'HYBRID', rerankModel: null, ...own })
})

it('finds duplicate settings', () => {
  const one = { key: 0, mode: 'HYBRID', reranker: 'default' } as const
  expect(isRepeated([one, { ...one, key: 1 }])).toBe(true)
  expect(isRepeated([one, { ...one, key: 1, reranker: 'none' }])).toBe(false)
})
