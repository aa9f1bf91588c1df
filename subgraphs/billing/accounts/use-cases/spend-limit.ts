import { KisError } from '../../../common/errors.ts'
import { NOTHING_SPENT, nextReset, type SpendLimit, type SpendPeriod, spentIn } from '../../ledger/domain/key-spending.ts'
import { listSpenders, type Wallet } from '../../ledger/domain/wallet.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'

/** Keys that are read together, as the port allows. */
const PAGE_KEYS = 1_000
/**
 * How long a revoked key's limit is kept: accepted documents may wait for minutes, behind a large backlog for hours.
 */
const REVOKED_LIMIT_MS = 7 * 86_400_000
/** Limits of revoked keys kept in the wallet: as many as keys that may end together. */
export const MAX_REVOKED_LIMITS = 1_000

/** The key's limit from the wallet, where it is enforced. */
export async function findSpendLimit({ collections }: BillingDeps, organizationId: string, apiKeyId: string): Promise<SpendLimit | null> {
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  return wallet?.spending[apiKeyId]?.limit ?? null
}

/** How far a key's limit is used; null when it has none. Amounts are in nano-USD. */
export function describeSpendLimit({ clock }: Pick<BillingDeps, 'clock'>, wallet: Wallet, apiKeyId: string) {
  const { limit, ...spending } = wallet.spending[apiKeyId] ?? NOTHING_SPENT
  if (!limit) return null
  const now = clock.now()
  const held = Object.values(wallet.holds).reduce((sum, hold) => (listSpenders(hold).includes(apiKeyId) ? sum + hold.amount : sum), 0)
  return {
    amount: BigInt(limit.amount),
    period: limit.period,
    spent: BigInt(spentIn({ limit, ...spending }, limit.period, now)),
    held: BigInt(held),
    resetsAt: nextReset(limit.period, now),
  }
}

/** What the key and its descendants have spent, in nano-USD; null: it was revoked, and its sums may be gone. */
export function describeSpent(
  { clock }: Pick<BillingDeps, 'clock'>,
  wallet: Wallet,
  { _id, revokedAt }: Pick<ApiKey, '_id' | 'revokedAt'>,
) {
  if (revokedAt !== null) return null
  const spending = wallet.spending[_id] ?? NOTHING_SPENT
  const now = clock.now()
  const spent = (period: SpendPeriod) => BigInt(spentIn(spending, period, now))
  return { today: spent('day'), thisMonth: spent('month'), total: spent('total') }
}

/** Sets or removes the limit, in force from the next hold on. What the key has already spent in the period counts. */
export async function putSpendLimit(deps: BillingDeps, organizationId: string, apiKeyId: string, limit: SpendLimit | null): Promise<void> {
  await deps.writer.change(organizationId, null, (wallet) => {
    const before = wallet.spending(apiKeyId).limit
    if (before?.amount !== limit?.amount || before?.period !== limit?.period) wallet.putSpendLimit(apiKeyId, limit)
  })
}

/**
 * Ensures that nobody hands out, changes or takes over a key that may spend more than their own. For each limit on the
 * caller's key or an ancestor of it, spending of the key `of` must count in that limit. If the limit is on the caller's
 * key or on `of`, `wanted` must have the same period and no higher amount.
 * @throws {KisError} `permission_denied`: the key could spend more
 */
export async function requireSpendable(
  { collections }: BillingDeps,
  own: ApiKey,
  of: Pick<ApiKey, '_id' | 'ancestors'>,
  wanted: SpendLimit | null,
): Promise<void> {
  const wallet = await collections.wallets.findOne({ _id: own.organizationId })
  for (const id of keysCountedFor(own)) {
    const limit = wallet?.spending[id]?.limit
    if (!limit) continue
    const isWithin = wanted?.period === limit.period && wanted.amount <= limit.amount
    if (!keysCountedFor(of).includes(id) || ((id === own._id || id === of._id) && !isWithin))
      throw new KisError('permission_denied', 'The key must not be able to spend more than your own key.')
  }
}

function keysCountedFor({ _id, ancestors }: Pick<ApiKey, '_id' | 'ancestors'>): readonly string[] {
  return listSpenders({ apiKeyId: _id, ...(ancestors && { ancestors }) })
}

/**
 * Drops the counters of revoked keys without running calls. Counters of limited keys stay for a while, because
 * documents that they had accepted may still be processed at their cost, and those of removed members because they still
 * bound the keys that these created. A later revocation drops what stays now.
 */
export async function purgeRevokedSpending(deps: BillingDeps, organizationId: string): Promise<void> {
  const wallet = await deps.collections.wallets.findOne({ _id: organizationId })
  if (!wallet) return
  const counted = Object.keys(wallet.spending)
  const keys = await findKeys(deps, counted)
  const since = new Date(deps.clock.now().getTime() - REVOKED_LIMIT_MS)
  const limited = keys.filter(
    ({ _id, revokedAt, leavesDescendants }) => revokedAt && (revokedAt > since || leavesDescendants) && wallet.spending[_id]?.limit,
  )
  const live = keys.filter(({ revokedAt }) => revokedAt === null)
  const retained = new Set([...live, ...limited.toSorted(byRevocation).slice(0, MAX_REVOKED_LIMITS)].map(({ _id }) => _id))
  await deps.writer.change(organizationId, null, (draft) => {
    for (const id of counted) if (!retained.has(id) && draft.heldBy(id) === 0) draft.dropSpending(id)
  })
}

async function findKeys({ collections }: BillingDeps, ids: readonly string[]): Promise<readonly ApiKey[]> {
  const found: ApiKey[] = []
  for (let from = 0; from < ids.length; from += PAGE_KEYS)
    found.push(...(await collections.apiKeys.find({ _id: { $in: ids.slice(from, from + PAGE_KEYS) } }, { limit: PAGE_KEYS })))
  return found
}

/** Latest first. Of keys that ended together, ancestors first, because their limits also bound the others. */
function byRevocation(a: ApiKey, b: ApiKey): number {
  return b.revokedAt!.getTime() - a.revokedAt!.getTime() || (a.ancestors?.length ?? 0) - (b.ancestors?.length ?? 0)
}
