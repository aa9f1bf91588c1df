import { describeSpendLimit, describeSpent } from '../accounts/use-cases/spend-limit.ts'
import type { Wallet } from '../ledger/domain/wallet.ts'
import { findWallet } from '../ledger/use-cases/read-ledger.ts'
import type { ApiKey } from '../use-cases/tables.ts'
import type { Context } from './context.ts'

/** Wallets read during a request, so that a list of keys reads its wallet once. */
const reads = new WeakMap<Context, Map<string, Promise<Wallet | null>>>()

function readWallet(context: Context, organizationId: string): Promise<Wallet | null> {
  const under = reads.get(context) ?? new Map<string, Promise<Wallet | null>>()
  reads.set(context, under)
  const known = under.get(organizationId)
  if (known) return known
  const read = findWallet(context.deps, organizationId).finally(() => under.delete(organizationId))
  under.set(organizationId, read)
  return read
}

/** Returns the key's limit, with its current use; null: it has none. */
export async function spendLimit({ _id, organizationId }: ApiKey, _args: object, context: Context) {
  const wallet = await readWallet(context, organizationId)
  return wallet && describeSpendLimit(context.deps, wallet, _id)
}

/** Returns what the key has spent; null: it was revoked. */
export async function spent(key: ApiKey, _args: object, context: Context) {
  const wallet = await readWallet(context, key.organizationId)
  return wallet && describeSpent(context.deps, wallet, key)
}
