import type { WebhookEvent, WebhookSource } from '../../../common/events/webhook-events.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { WalletChange } from '../../ledger/domain/wallet-change.ts'
import { entriesAfter } from '../../ledger/use-cases/follow-ledger.ts'
import { toUsageEvents, type UsageEvent } from '../../ledger/use-cases/follow-usage.ts'
import { toWalletChanges } from '../../ledger/use-cases/follow-wallet.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'

/** Entries of one read, from the latest backwards. */
const PAGE_ENTRIES = 100
/**
 * Entries get their numbers as they are written. Their dates are out of order only if the clocks of processes differ.
 */
const LATE_MS = 60_000

/**
 * Returns the ledger's events for webhooks. Each usage record is a subject of its own, and so is an organization's
 * balance.
 */
export function ledgerSource(deps: Pick<BillingDeps, 'collections'>): WebhookSource {
  const { wallets, entries } = deps.collections
  return {
    async ends(organizationIds) {
      const found = await wallets.find({ _id: { $in: organizationIds } }, { limit: organizationIds.length })
      return new Map(found.map(({ _id, sequence }) => [_id, sequence]))
    },

    async positionBefore(organizationId, since) {
      const from = new Date(since.getTime() - LATE_MS)
      for (let lowest = Number.MAX_SAFE_INTEGER; ; ) {
        const page = await entries.find({ organizationId, sequence: { $lt: lowest } }, { sort: { sequence: -1 }, limit: PAGE_ENTRIES })
        const before = page.find(({ at }) => at < from)
        if (before) return before.sequence
        if (page.length < PAGE_ENTRIES) return 0
        lowest = page.at(-1)!.sequence
      }
    },

    async read(organizationId, after) {
      const page = await entriesAfter(deps, organizationId, after)
      const usage = await toUsageEvents(deps, page)
      const changes = await toWalletChanges(deps, organizationId, page)
      const events = [...usage.map(usageRecorded), ...changes.flatMap(walletChanged)]
      return { events, cursor: page.at(-1)?.sequence ?? after }
    },
  }
}

function usageRecorded({ record, cursor }: UsageEvent): WebhookEvent {
  const { _id, apiKeyId, modelId, operation, amount, source, requestId, at } = record
  return {
    type: 'usage.recorded',
    subject: _id,
    sequence: Number(cursor),
    at,
    data: {
      usage_record_id: _id,
      model: modelId,
      api_key_id: apiKeyId,
      operation,
      amount_usd: formatUsd(BigInt(amount)),
      source,
      request_id: requestId,
      cursor,
    },
  }
}

function walletChanged({ organizationId, balance, isLow, crossed, at, cursor }: WalletChange): readonly WebhookEvent[] {
  const balanceUsd = formatUsd(BigInt(balance))
  const common = { subject: organizationId, sequence: Number(cursor), at }
  const changed: WebhookEvent = { type: 'wallet.changed', ...common, data: { balance_usd: balanceUsd, is_low: isLow, crossed, cursor } }
  return crossed === 'fell' ? [changed, { type: 'wallet.low_balance', ...common, data: { balance_usd: balanceUsd, cursor } }] : [changed]
}
