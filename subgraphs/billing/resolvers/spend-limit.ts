import { NOTHING_SPENT, resetOf, spentIn } from '../ledger/domain/key-spending.ts'
import { spendersOf, type Wallet } from '../ledger/domain/wallet.ts'
import type { ApiKey } from '../use-cases/tables.ts'
import type { Context } from './context.ts'

/** Wallets read during a request, so that a list of keys reads its wallet once. */
const reads = new WeakMap<Context, Map<string, Promise<Wallet | null>>>()

function walletOf(context: Context, organizationId: string): Promise<Wallet | null> {
  const under = reads.get(context) ?? new Map<string, Promise<Wallet | null>>()
  reads.set(context, under)
  const known = under.get(organizationId)
  if (known) return known
  const read = context.deps.collections.wallets.findOne({ _id: organizationId }).finally(() => under.delete(organizationId))
  under.set(organizationId, read)
  return read
}

/** The key's limit, with its current use; null: it has none. */
export async function spendLimit({ _id, organizationId }: ApiKey, _args: object, context: Context) {
  const wallet = await walletOf(context, organizationId)
  const { limit, ...spending } = wallet?.spending[_id] ?? NOTHING_SPENT
  if (!wallet || !limit) return null
  const now = context.deps.clock.now()
  const held = Object.values(wallet.holds).reduce((sum, hold) => (spendersOf(hold).includes(_id) ? sum + hold.amount : sum), 0)
  return {
    amount: BigInt(limit.amount),
    period: limit.period,
    spent: BigInt(spentIn({ limit, ...spending }, limit.period, now)),
    held: BigInt(held),
    resetsAt: resetOf(limit.period, now),
  }
}
