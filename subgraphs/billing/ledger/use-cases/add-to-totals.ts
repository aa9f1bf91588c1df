import { ServiceUnavailable } from '../../../common/errors.ts'
import type { Collections } from '../../use-cases/tables.ts'
import { type PostedUsage, toTotal, totalWith, type UsageTotal } from '../domain/usage-total.ts'

/** Consecutive writes of one total that other processes may overtake. */
const MAX_ATTEMPTS = 20

/**
 * Adds records to the totals of their days, each once, even if calls are repeated. An organization's records must come
 * in order, and a batch only after the one before is in the totals. So a total that includes one record includes all
 * earlier ones.
 */
export async function addToTotals({ usageTotals }: Pick<Collections, 'usageTotals'>, records: readonly PostedUsage[]): Promise<void> {
  const byTotal = Map.groupBy(records, ({ usage }) => toTotal(usage)._id)
  await Promise.all([...byTotal.values()].map((posted) => addToTotal(usageTotals, posted)))
}

async function addToTotal(totals: Collections['usageTotals'], posted: readonly PostedUsage[]): Promise<void> {
  const empty = toTotal(posted[0]!.usage)
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const stored: UsageTotal | null = await totals.findOne({ _id: empty._id })
    const total = totalWith(stored ?? empty, posted)
    if (total === stored) return
    if (!stored) {
      if ((await totals.insertMissing([total])) === 1) return
      continue
    }
    const { calls, amount, quantities, upTo } = total
    if (await totals.updateOne({ _id: total._id, upTo: stored.upTo }, { $set: { calls, amount, quantities, upTo } })) return
  }
  throw new ServiceUnavailable('The usage summary')
}
