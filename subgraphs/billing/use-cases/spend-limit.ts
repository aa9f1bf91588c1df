import { PermissionDenied } from '../../common/errors.ts'
import type { Principal } from '../../common/principal.ts'
import type { SpendLimit } from '../domain/key-spending.ts'
import type { BillingDeps } from './deps.ts'

/** Keys that are looked up together, as the port allows. */
const PAGE_KEYS = 1_000

/** The key's limit, from the wallet, where it is judged. */
export async function spendLimitOf({ collections }: BillingDeps, organizationId: string, apiKeyId: string): Promise<SpendLimit | null> {
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  return wallet?.spending[apiKeyId]?.limit ?? null
}

/** Sets or lifts the limit, in force from the next hold on. What the key has spent in the period counts. */
export async function putSpendLimit(deps: BillingDeps, organizationId: string, apiKeyId: string, limit: SpendLimit | null): Promise<void> {
  await deps.writer.change(organizationId, null, (wallet) => {
    const before = wallet.spending(apiKeyId).limit
    if (before?.amount !== limit?.amount || before?.period !== limit?.period) wallet.putSpendLimit(apiKeyId, limit)
  })
}

/**
 * Nobody hands out, changes or takes over a key that may spend more than their own: where that is limited, the other has the same period and
 * no higher amount. @throws {PermissionDenied}
 */
export async function requireSpendable(deps: BillingDeps, principal: Principal, limit: SpendLimit | null): Promise<void> {
  const own = await spendLimitOf(deps, principal.organizationId, principal.apiKeyId)
  if (own && !(limit?.period === own.period && limit.amount <= own.amount))
    throw new PermissionDenied('of a spend limit that covers the key')
}

/**
 * Forgets the counters of revoked keys that have no call under way. One whose calls are still under way keeps them, with its limit, until
 * the next key is revoked.
 */
export async function forgetRevokedSpending(deps: BillingDeps, organizationId: string): Promise<void> {
  const { wallets, apiKeys } = deps.collections
  const wallet = await wallets.findOne({ _id: organizationId })
  const counted = Object.keys(wallet?.spending ?? {}).slice(0, PAGE_KEYS)
  if (counted.length === 0) return
  const keys = await apiKeys.find({ _id: { $in: counted } }, { limit: counted.length })
  const live = new Set(keys.filter(({ revokedAt }) => revokedAt === null).map(({ _id }) => _id))
  await deps.writer.change(organizationId, null, (draft) => {
    for (const id of counted) if (!live.has(id) && draft.heldBy(id) === 0) draft.dropSpending(id)
  })
}
