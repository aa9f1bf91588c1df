import { evalData } from '../test/support/data/eval-vectors.ts'
import { DIRECTIONS, Retrieval } from '../test/support/data/retrieval.ts'
import type { BenchRow } from './row.ts'

/** Measures nDCG@10 on the development half of XQuAD, through the whole running service. */
export async function benchRetrieval(): Promise<BenchRow[]> {
  const data = await evalData()
  const what = (from: string, pool: string) => `retrieval, questions ${from}, paragraphs ${pool}`
  if (!data) {
    return DIRECTIONS.map(([from, pool, target]) => ({
      what: what(from, pool),
      figure: 'not measured: ../shared/eval is absent',
      target: `nDCG@10 ≥ ${target}`,
      beside: '',
    }))
  }
  await using retrieval = await Retrieval.start(data)
  const rows: BenchRow[] = []
  for (const [from, pool, target] of DIRECTIONS) {
    const reached = await retrieval.ndcg(from, pool)
    rows.push({ what: what(from, pool), figure: `nDCG@10 ${reached.toFixed(3)}`, target: `≥ ${target}`, beside: 'a perfect order: 1' })
  }
  return rows
}
