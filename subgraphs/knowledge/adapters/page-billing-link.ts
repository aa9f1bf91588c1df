import { billingOperation } from '../../../schema/operations.ts'
import { KisError, StalePrincipal } from '../../common/errors.ts'
import { type Link, request } from '../../common/link/link.ts'
import type { IdSource } from '../../common/process/ids.ts'
import { formatUsd, parseUsd } from '../../common/usd.ts'
import type { PageBilling } from '../ports/page-billing.ts'

const HOLD = billingOperation('mutation HoldPages($input: PlaceHoldInput!) { placeHold(input: $input) { id } }')
const RENEW = billingOperation('mutation RenewPages($input: CheckpointHoldInput!) { checkpointHold(input: $input) { id } }')
const SETTLE = billingOperation('mutation SettlePages($input: SettleHoldInput!) { settleHold(input: $input) { state } }')
const VOID = billingOperation('mutation VoidPages($id: ID!) { voidHold(id: $id) { state } }')

/** The recognizer's model ID in usage records. */
const MODEL_ID = 'tesseract'
/** Ten pages take at most 200 s of CPU, round robin with other organizations. */
const TTL_SECONDS = 3_600
/** Billing's price is per million units. */
const MILLION = 1_000_000n

/** Implements `PageBilling` with calls to billing. */
export function pageBillingOver(link: Link, ids: IdSource): PageBilling {
  return {
    async hold(pages, context) {
      const id = ids('hold')
      const { ocrPagePrice = '0' } = context.caller.plan
      const input = {
        id,
        operation: 'OCR' as const,
        modelId: MODEL_ID,
        requestId: context.requestId,
        rateCard: { version: `ocr-${ocrPagePrice}`, pages: formatUsd(parseUsd(ocrPagePrice) * MILLION) },
        ceiling: { pages },
        ttlSeconds: TTL_SECONDS,
      }
      await request(link, { query: HOLD, variables: { input } }, context)
      return id
    },

    async renew(id, context) {
      const input = { id, quantities: {}, ttlSeconds: TTL_SECONDS }
      try {
        await request(link, { query: RENEW, variables: { input } }, context)
        return true
      } catch (error) {
        if (isEnded(error)) return false
        throw error
      }
    },

    async settle(id, pages, context) {
      try {
        if (pages === 0) return (await request(link, { query: VOID, variables: { id } }, context)).voidHold.state !== 'EXPIRED'
        const input = { id, quantities: { pages }, source: 'COUNTED' as const }
        return (await request(link, { query: SETTLE, variables: { input } }, context)).settleHold.state !== 'EXPIRED'
      } catch (error) {
        if (error instanceof KisError && error.code === 'not_found') return false
        throw error
      }
    },
  }
}

/** Billing reports an ended hold as not found, or as not worth a retry. An outage includes a delay before a retry. */
function isEnded(error: unknown): boolean {
  if (!(error instanceof KisError) || error instanceof StalePrincipal) return false
  return error.code === 'not_found' || (error.code === 'service_unavailable' && error.retryAfterMs === 0)
}
