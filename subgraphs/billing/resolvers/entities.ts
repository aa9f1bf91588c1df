import { NotFound } from '../../common/errors.ts'
import { hasScope, type Principal, requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import { planOf } from '../accounts/use-cases/find-principal.ts'
import { balanceChange } from '../ledger/domain/ledger.ts'
import { UNITS } from '../ledger/domain/money.ts'
import type { UsageRecord } from '../ledger/domain/usage.ts'
import { balanceOf } from '../ledger/domain/wallet.ts'
import { listApiKeys, listEntries } from '../ledger/use-cases/list-billing.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import type { ApiKey } from '../use-cases/tables.ts'
import type { Resolvers } from './generated.ts'
import { spendLimit } from './spend-limit.ts'

/**
 * Hides what other subgraphs refer to from strangers: only the caller's own organization and operators see it; for
 * others it does not exist.
 */
function visible<T>(principal: Principal, entity: T | null, organizationIdOf: (entity: T) => string): T | null {
  return entity && (organizationIdOf(entity) === principal.organizationId || hasScope(principal, 'operator')) ? entity : null
}

async function findUsageRecord({ collections, pump }: BillingDeps, organizationId: string, id: string): Promise<UsageRecord | null> {
  const copied = await collections.usage.findOne({ _id: id })
  if (copied) return copied
  await pump.drain(organizationId)
  return collections.usage.findOne({ _id: id })
}

/** Other keys are shown only to callers who may manage them. */
function isShown(principal: Principal, apiKeyId: string): boolean {
  return apiKeyId === principal.apiKeyId || hasScope(principal, 'admin')
}

async function findShownKey({ collections }: BillingDeps, principal: Principal, id: string): Promise<ApiKey | null> {
  if (!isShown(principal, id)) return null
  return visible(principal, await collections.apiKeys.findOne({ _id: id }), (key) => key.organizationId)
}

export const entities: Resolvers = {
  Organization: {
    async __resolveReference({ id }, { deps, caller }) {
      return visible(requirePrincipal(caller), await deps.collections.organizations.findOne({ _id: id }), ({ _id }) => _id)
    },
    id: ({ _id }) => _id,
    lowBalanceThreshold: ({ lowBalanceThreshold }) => (lowBalanceThreshold == null ? null : BigInt(lowBalanceThreshold)),
    plan: (organization, _args, { deps }) => planOf(deps, organization),
    async wallet({ _id }, _args, { deps, caller }) {
      requireScope(caller, 'billing:read')
      const wallet = await deps.collections.wallets.findOne({ _id })
      if (!wallet) throw new NotFound('organization', _id)
      return wallet
    },
    apiKeys({ _id }, args, { deps, caller }) {
      requireScope(caller, 'admin')
      return listApiKeys(deps, _id, args)
    },
  },

  Wallet: {
    balance: (wallet) => BigInt(balanceOf(wallet)),
    held: ({ held }) => BigInt(held),
    available: ({ available }) => BigInt(available),
    entries: ({ _id }, args, { deps }) => listEntries(deps, _id, args),
  },

  LedgerEntry: {
    id: ({ _id }) => _id,
    amount: ({ postings }) => BigInt(balanceChange(postings)),
    held: ({ postings }) => BigInt(postings.held ?? 0),
    balance: ({ balance }) => BigInt(balance),
  },

  ApiKey: {
    async __resolveReference({ id }, { deps, caller }) {
      return findShownKey(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    spendLimit,
  },

  UsageGroup: {
    model: ({ modelId }) => (modelId === null ? null : { id: modelId }),
    apiKeyId: ({ apiKeyId }, _args, { caller }) => (apiKeyId && isShown(requirePrincipal(caller), apiKeyId) ? apiKeyId : null),
    apiKey: ({ apiKeyId }, _args, { deps, caller }) => (apiKeyId === null ? null : findShownKey(deps, requirePrincipal(caller), apiKeyId)),
    totals: (group) => group,
  },

  UsageTotals: {
    calls: ({ calls }) => Number(calls),
    inputTokens: ({ quantities }) => Number(quantities.inputTokens),
    cachedInputTokens: ({ quantities }) => Number(quantities.cachedInputTokens),
    cacheWriteTokens: ({ quantities }) => Number(quantities.cacheWriteTokens),
    outputTokens: ({ quantities }) => Number(quantities.outputTokens),
    audioSeconds: ({ quantities }) => Number(quantities.audioMilliseconds) / 1_000,
  },

  UsageRecord: {
    async __resolveReference({ id }, { deps, caller }) {
      const principal = requirePrincipal(caller)
      return visible(principal, await findUsageRecord(deps, principal.organizationId, id), (record) => record.organizationId)
    },
    id: ({ _id }) => _id,
    model: ({ modelId }) => ({ id: modelId }),
    apiKey: ({ apiKeyId }, _args, { deps, caller }) => findShownKey(deps, requirePrincipal(caller), apiKeyId),
    quantities: ({ quantities, rates }) =>
      UNITS.filter((unit) => quantities[unit] > 0).map((unit) => ({ unit, quantity: quantities[unit], rate: BigInt(rates[unit]) })),
    amount: ({ amount }) => BigInt(amount),
  },
}
