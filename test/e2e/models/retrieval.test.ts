import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evalData } from '../../support/data/eval-vectors.ts'
import { DIRECTIONS, Retrieval } from '../../support/data/retrieval.ts'

const data = await evalData()
const title = data
  ? 'retrieval through the running service'
  : 'retrieval through the running service (skipped: ../shared/eval is not beside this project)'

describe.skipIf(!data)(title, () => {
  let retrieval: Retrieval
  beforeAll(async () => {
    retrieval = await Retrieval.start(data!)
  }, 600_000)
  afterAll(() => retrieval?.[Symbol.asyncDispose]())

  for (const [from, pool, bar] of DIRECTIONS) {
    it(`reaches nDCG@10 of ${bar} for ${from} questions over ${pool} paragraphs`, async () => {
      expect(await retrieval.ndcg(from, pool)).toBeGreaterThanOrEqual(bar)
    }, 300_000)
  }
})
