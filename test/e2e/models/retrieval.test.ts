import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evalData } from '../../support/data/eval-vectors.ts'
import { DIRECTIONS, Retrieval } from '../../support/data/retrieval.ts'
import { soaking } from '../../support/soak.ts'

/**
 * A tenth of the 612 questions of each language, the same in each run; all of them in `npm run soak` and
 * `npm run bench`.
 */
const EVERY = soaking ? 1 : 10

const data = await evalData()
const title = data
  ? 'Retrieval through the running service'
  : 'Retrieval through the running service (skipped: ../shared/eval is not beside this project)'

describe.skipIf(!data)(title, () => {
  let retrieval: Retrieval
  beforeAll(async () => {
    retrieval = await Retrieval.start({ ...data!, questions: data!.questions.filter((_, i) => i % EVERY === 0) })
  }, 600_000)
  afterAll(() => retrieval?.[Symbol.asyncDispose]())

  for (const [from, pool, target] of DIRECTIONS) {
    it(`reaches nDCG@10 of ${target} for ${from} questions over ${pool} paragraphs`, async () => {
      const reached = await retrieval.ndcg(from, pool)
      console.info(`${from}→${pool}: nDCG@10 ${reached.toFixed(4)}`)
      expect(reached).toBeGreaterThanOrEqual(target)
    }, 300_000)
  }
})
