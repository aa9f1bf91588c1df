import { LRUCache } from 'lru-cache'
import type { Telemetry } from '../../common/telemetry/telemetry.ts'
import type { Billing } from '../ports/billing.ts'

const NANO_USD = 1e9
/** Far more than the open holds of one process. */
const MAX_HOLDS = 10_000
/** The model of a hold that another process placed. */
const UNKNOWN = 'unknown'

/** Reports each charge to the request that it is for, and to the metrics. */
export function observedBilling(billing: Billing, { metrics, requests }: Pick<Telemetry, 'metrics' | 'requests'>): Billing {
  const models = new LRUCache<string, string>({ max: MAX_HOLDS })
  return {
    ...billing,

    placeHold(hold, context) {
      models.set(hold.id, hold.modelId)
      return billing.placeHold(hold, context)
    },

    async settleHold(id, quantities, source, context) {
      const settled = await billing.settleHold(id, quantities, source, context)
      const model = models.get(id) ?? UNKNOWN
      models.delete(id)
      if (!settled.isOwn) return settled
      const { inputTokens: uncached, cachedInputTokens, cacheWriteTokens, outputTokens } = quantities
      const inputTokens = uncached + cachedInputTokens + cacheWriteTokens
      requests.spent(context.requestId, { inputTokens, outputTokens, costNanoUsd: settled.charged })
      metrics.add('kis_calls_charged_total', 1, model)
      metrics.add('kis_tokens_total', inputTokens, model, 'input')
      metrics.add('kis_tokens_total', outputTokens, model, 'output')
      metrics.add('kis_charged_usd_total', Number(settled.charged) / NANO_USD, model)
      return settled
    },
  }
}
