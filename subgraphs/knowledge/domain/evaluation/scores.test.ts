import { describe, expect, it } from 'vitest'
import { type RankedHit, rankExpected } from './ranks.ts'
import { scoreQuestions } from './scores.ts'

const createHit = (text: string, more: Partial<RankedHit> = {}): RankedHit => ({
  fileName: 'a.pdf',
  pageStart: 1,
  pageEnd: 1,
  text,
  lexicalRank: null,
  vectorRank: null,
  ...more,
})

describe('Expected chunk of an evaluation', () => {
  const hits = [
    createHit('The harbour', { lexicalRank: 2, vectorRank: 1 }),
    createHit('«الميناءُ»  بُني عام 1931', { pageStart: 2, pageEnd: 4, lexicalRank: 1 }),
    createHit('The harbour again', { fileName: 'b.pdf', lexicalRank: null, vectorRank: 9 }),
  ]
  for (const [what, expected, combined] of [
    ['is found by its phrase, whatever its case', { phrase: 'THE  harbour' }, 1],
    ['is found by its phrase without marks', { phrase: 'الميناء» بني' }, 2],
    ['is found by its file', { fileName: 'b.pdf' }, 3],
    ['is found by a page in its middle', { page: 3 }, 2],
    ['must match all given criteria', { phrase: 'harbour', fileName: 'b.pdf', page: 1 }, 3],
    ['may be absent', { phrase: 'lighthouse' }, null],
  ] as const)
    it(what, () => expect(rankExpected([{ fileName: null, page: null, phrase: null, ...expected }], hits).combined).toEqual([combined]))

  it('has its rank in each ranking', () => {
    expect(rankExpected([{ fileName: null, page: null, phrase: 'harbour' }], hits)).toEqual({ combined: [1], words: [2], meaning: [1] })
  })
})

describe('Evaluation scores', () => {
  const ranks = (...combined: (number | null)[]) => ({ combined, words: combined.map(() => null), meaning: combined })

  it('are means over the questions, for all languages and for each', () => {
    const scores = scoreQuestions([
      { language: 'en', ranks: ranks(1) },
      { language: 'en', ranks: ranks(4) },
      { language: 'ar', ranks: ranks(null) },
    ])
    expect(scores.map(({ ranking, language, questionCount }) => [ranking, language, questionCount])).toEqual([
      ['combined', null, 3],
      ['combined', 'ar', 1],
      ['combined', 'en', 2],
      ['words', null, 3],
      ['words', 'ar', 1],
      ['words', 'en', 2],
      ['meaning', null, 3],
      ['meaning', 'ar', 1],
      ['meaning', 'en', 2],
    ])
    expect(scores[2]).toMatchObject({ recallAt1: 0.5, recallAt3: 0.5, recallAt10: 1, mrrAt10: (1 + 1 / 4) / 2 })
    expect(scores[2]!.ndcgAt10).toBeCloseTo((1 + 1 / Math.log2(5)) / 2)
    expect(scores[1]).toMatchObject({ recallAt10: 0, ndcgAt10: 0, mrrAt10: 0 })
  })

  it('count the share of several expected chunks, and a hit that matches two once', () => {
    const [score] = scoreQuestions([{ language: null, ranks: ranks(1, 2, null, 11) }])
    expect(score).toMatchObject({ recallAt1: 0.25, recallAt3: 0.5, recallAt10: 0.5, mrrAt10: 1 })
    expect(scoreQuestions([{ language: null, ranks: ranks(1, 1) }])[0]!.ndcgAt10).toBeCloseTo(1 / (1 + 1 / Math.log2(3)))
    expect(scoreQuestions([{ language: null, ranks: ranks(2, 1) }])[0]!.ndcgAt10).toBe(1)
  })

  it('are 0 without questions', () => {
    expect(scoreQuestions([])[0]).toMatchObject({ questionCount: 0, recallAt10: 0, ndcgAt10: 0 })
  })
})
