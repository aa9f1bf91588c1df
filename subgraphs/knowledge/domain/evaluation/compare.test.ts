import { expect, it } from 'vitest'
import { findFalls } from './compare.ts'
import type { JudgedQuestion } from './scores.ts'

const judged = (...ranks: (number | null)[]): JudgedQuestion[] =>
  ranks.map((rank, i) => ({ language: i % 2 === 0 ? 'en' : 'ar', ranks: { combined: [rank], words: [rank], meaning: [rank] } }))

it('names the measures that fell by more than the tolerance, overall and by language', () => {
  const falls = findFalls('hybrid', judged(1, 1, 1, 1), judged(1, 1, null, 1), 0.25)
  expect(falls.map(({ language, measure }) => [language, measure])).toEqual([
    ['en', 'recall_at_1'],
    ['en', 'recall_at_3'],
    ['en', 'recall_at_10'],
    ['en', 'ndcg_at_10'],
    ['en', 'mrr_at_10'],
  ])
  expect(falls[0]).toMatchObject({ settings: 'hybrid', before: 1, after: 0.5 })
})

it('names no measure that rose, stayed, or fell by exactly the tolerance', () => {
  expect(findFalls('hybrid', judged(null, 2), judged(1, 2), 0.01)).toEqual([])
  expect(findFalls('hybrid', judged(1, 1, 1, 1), judged(1, 1, 1, 1), 0.01)).toEqual([])
  expect(findFalls('hybrid', judged(1, 1, 1, 1), judged(1, 1, 1, 2), 0.5)).toEqual([])
})
