import { expect, it } from 'vitest'
import { change, toRows } from './compare.ts'

const score = (ranking: string, language: string | null, recall: number, questionCount = 4) => ({
  ranking,
  language,
  questionCount,
  recallAt1: recall,
  recallAt3: recall,
  recallAt10: recall,
  ndcgAt10: recall,
  mrrAt10: recall,
})

it('puts each score beside that of the same settings, ranking and language', () => {
  const now = [
    { label: 'HYBRID', scores: [score('COMBINED', null, 0.75), score('COMBINED', 'ar', 0.5), score('WORDS', 'en', 0, 0)] },
    { label: 'new', scores: [score('COMBINED', null, 1)] },
  ]
  const before = [{ label: 'HYBRID', scores: [score('COMBINED', 'ar', 0.625), score('COMBINED', null, 0.7)] }]
  const rows = toRows(now, before)
  expect(rows.map((row) => [row.label, row.isFirst, row.score.language, change(row, 'recallAt1')])).toEqual([
    ['HYBRID', true, null, 5],
    ['HYBRID', false, 'ar', -12.5],
    ['new', true, null, null],
  ])
})

it('has nothing to compare with a single evaluation', () => {
  const [row] = toRows([{ label: 'a', scores: [score('COMBINED', null, 1)] }], null)
  expect(change(row!, 'mrrAt10')).toBeNull()
})
