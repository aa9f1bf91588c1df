import { NotFound } from '../../common/errors.ts'
import { hasScope, type Principal, requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import type { PageArguments } from '../../common/link/connection.ts'
import type { ResolverContext, Resolvers } from '../../common/link/subgraph.ts'
import { planOf } from '../accounts/use-cases/find-principal.ts'
import { balanceChange, type LedgerEntry } from '../ledger/domain/ledger.ts'
import { UNITS } from '../ledger/domain/money.ts'
import type { UsageRecord } from '../ledger/domain/usage.ts'
import type { UsageSums } from '../ledger/domain/usage-total.ts'
import { balanceOf, type Wallet } from '../ledger/domain/wallet.ts'
import { listApiKeys, listEntries } from '../ledger/use-cases/list-billing.ts'
import type { UsageGroup } from '../ledger/use-cases/summarize-usage.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import type { ApiKey, Organization } from '../use-cases/tables.ts'
import { spendLimit } from './spend-limit.ts'

type Context = ResolverContext<BillingDeps>
type Reference = { readonly id: string }

/** What another subgraph points to: the caller's own, or for an operator anybody's; otherwise it looks absent. */
function visible<T>(principal: Principal, entity: T | null, organizationIdOf: (entity: T) => string): T | null {
  return entity && (organizationIdOf(entity) === principal.organizationId || hasScope(principal, 'operator')) ? entity : null
}

async function findUsageRecord({ collections, pump }: BillingDeps, organizationId: string, id: string): Promise<UsageRecord | null> {
  const copied = await collections.usage.findOne({ _id: id })
  if (copied) return copied
  await pump.drain(organizationId)
  return collections.usage.findOne({ _id: id })
}

/** Others' keys are shown to who may manage them. */
function isShown(principal: Principal, apiKeyId: string): boolean {
  return apiKeyId === principal.apiKeyId || hasScope(principal, 'admin')
}

async function findShownKey({ collections }: BillingDeps, principal: Principal, id: string): Promise<ApiKey | null> {
  if (!isShown(principal, id)) return null
  return visible(principal, await collections.apiKeys.findOne({ _id: id }), (key) => key.organizationId)
}

export const entities: Resolvers<BillingDeps> = {
  Organization: {
    async __resolveReference({ id }: Reference, { deps, caller }: Context) {
      return visible(requirePrincipal(caller), await deps.collections.organizations.findOne({ _id: id }), ({ _id }) => _id)
    },
    id: ({ _id }: Organization) => _id,
    lowBalanceThreshold: ({ lowBalanceThreshold }: Organization) => (lowBalanceThreshold == null ? null : BigInt(lowBalanceThreshold)),
    plan: (organization: Organization, _args: object, { deps }: Context) => planOf(deps, organization),
    async wallet({ _id }: Organization, _args: object, { deps, caller }: Context): Promise<Wallet> {
      requireScope(caller, 'billing:read')
      const wallet = await deps.collections.wallets.findOne({ _id })
      if (!wallet) throw new NotFound('organization', _id)
      return wallet
    },
    apiKeys({ _id }: Organization, args: PageArguments, { deps, caller }: Context) {
      requireScope(caller, 'admin')
      return listApiKeys(deps, _id, args)
    },
  },

  Wallet: {
    balance: (wallet: Wallet) => BigInt(balanceOf(wallet)),
    held: ({ held }: Wallet) => BigInt(held),
    available: ({ available }: Wallet) => BigInt(available),
    entries: ({ _id }: Wallet, args: PageArguments, { deps }: Context) => listEntries(deps, _id, args),
  },

  LedgerEntry: {
    id: ({ _id }: LedgerEntry) => _id,
    amount: ({ postings }: LedgerEntry) => BigInt(balanceChange(postings)),
    held: ({ postings }: LedgerEntry) => BigInt(postings.held ?? 0),
    balance: ({ balance }: LedgerEntry) => BigInt(balance),
  },

  ApiKey: {
    async __resolveReference({ id }: Reference, { deps, caller }: Context) {
      return findShownKey(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }: ApiKey) => _id,
    spendLimit,
  },

  UsageGroup: {
    model: ({ modelId }: UsageGroup) => modelId && { id: modelId },
    apiKeyId: ({ apiKeyId }: UsageGroup, _args: object, { caller }: Context) =>
      apiKeyId && isShown(requirePrincipal(caller), apiKeyId) ? apiKeyId : null,
    apiKey: ({ apiKeyId }: UsageGroup, _args: object, { deps, caller }: Context) =>
      apiKeyId && findShownKey(deps, requirePrincipal(caller), apiKeyId),
    totals: (group: UsageGroup) => group,
  },

  UsageTotals: {
    calls: ({ calls }: UsageSums) => Number(calls),
    inputTokens: ({ quantities }: UsageSums) => Number(quantities.inputTokens),
    cachedInputTokens: ({ quantities }: UsageSums) => Number(quantities.cachedInputTokens),
    cacheWriteTokens: ({ quantities }: UsageSums) => Number(quantities.cacheWriteTokens),
    outputTokens: ({ quantities }: UsageSums) => Number(quantities.outputTokens),
    audioSeconds: ({ quantities }: UsageSums) => Number(quantities.audioMilliseconds) / 1_000,
  },

  UsageRecord: {
    async __resolveReference({ id }: Reference, { deps, caller }: Context) {
      const principal = requirePrincipal(caller)
      return visible(principal, await findUsageRecord(deps, principal.organizationId, id), (record) => record.organizationId)
    },
    id: ({ _id }: UsageRecord) => _id,
    model: ({ modelId }: UsageRecord) => ({ id: modelId }),
    apiKey: ({ apiKeyId }: UsageRecord, _args: object, { deps, caller }: Context) => findShownKey(deps, requirePrincipal(caller), apiKeyId),
    quantities: ({ quantities, rates }: UsageRecord) =>
      UNITS.filter((unit) => quantities[unit] > 0).map((unit) => ({ unit, quantity: quantities[unit], rate: BigInt(rates[unit]) })),
    amount: ({ amount }: UsageRecord) => BigInt(amount),
  },
}
