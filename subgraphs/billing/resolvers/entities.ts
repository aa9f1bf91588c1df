import { requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import { parseUsd } from '../../common/usd.ts'
import { findNamedKey, listApiKeys, mayNameKey } from '../accounts/use-cases/api-keys.ts'
import { erasedRecords, listErasures } from '../accounts/use-cases/erasures/erasures.ts'
import { getPlan } from '../accounts/use-cases/find-principal.ts'
import { getOcrQuota } from '../accounts/use-cases/get-ocr-quota.ts'
import { findOrganization, listChanges, statusOf } from '../accounts/use-cases/organizations.ts'
import { balanceChange } from '../ledger/domain/ledger.ts'
import { UNITS } from '../ledger/domain/money.ts'
import { isRunHold, walletBalance, walletId } from '../ledger/domain/wallet.ts'
import { findEntry, findUsageRecord, findWalletById, getWallet, listEntries, listHolds } from '../ledger/use-cases/read-ledger.ts'
import { summarizeUsage } from '../ledger/use-cases/summarize-usage.ts'
import { listInvitations } from '../members/use-cases/invitations.ts'
import { findMember, listMembers } from '../members/use-cases/members.ts'
import type { Resolvers } from './generated.ts'
import { spendLimit, spent } from './spend-limit.ts'

export const entities: Resolvers = {
  Organization: {
    __resolveReference({ id }, { deps, caller }) {
      return findOrganization(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    lowBalanceThreshold: ({ lowBalanceThreshold }) => (lowBalanceThreshold == null ? null : BigInt(lowBalanceThreshold)),
    status: statusOf,
    suspendedAt: ({ suspendedAt }) => suspendedAt ?? null,
    suspensionReason: ({ suspensionReason }) => suspensionReason ?? null,
    deletedAt: ({ deletedAt }) => deletedAt ?? null,
    limits: ({ limits }) => limits ?? {},
    changes(organization, args, { deps, caller }) {
      return listChanges(deps, requirePrincipal(caller), organization, args)
    },
    erasures(organization, args, { deps, caller }) {
      return listErasures(deps, requirePrincipal(caller), organization, args)
    },
    usageSummary({ _id }, { filter, groupBy }, { deps, caller }) {
      requireScope(caller, 'billing:read')
      return summarizeUsage(deps, _id, { ...filter, groupBy })
    },
    plan: (organization, _args, { deps }) => getPlan(deps, organization),
    ocrQuota: (organization, _args, { deps }) => getOcrQuota(deps, organization),
    wallet({ _id }, _args, { deps, caller }) {
      return getWallet(deps, requirePrincipal(caller), _id)
    },
    apiKeys({ _id }, args, { deps, caller, sifting }) {
      return listApiKeys(deps, requirePrincipal(caller), _id, args, sifting)
    },
    members({ _id }, args, { deps, caller }) {
      return listMembers(deps, requirePrincipal(caller), _id, args)
    },
    invitations({ _id }, args, { deps, caller }) {
      return listInvitations(deps, requirePrincipal(caller), _id, args)
    },
  },

  Plan: {
    ocrPages: ({ ocrPages }) => ocrPages ?? null,
    ocrPagePrice: ({ ocrPagePrice }) => parseUsd(ocrPagePrice ?? '0'),
  },

  Wallet: {
    __resolveReference({ id }, { deps, caller }) {
      return findWalletById(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => walletId(_id),
    balance: (wallet) => BigInt(walletBalance(wallet)),
    held: ({ held }) => BigInt(held),
    available: ({ available }) => BigInt(available),
    entries: ({ _id }, args, { deps }) => listEntries(deps, _id, args),
    holds: listHolds,
  },

  OpenHold: {
    amount: ({ amount }) => BigInt(amount),
    operation: (hold) => (isRunHold(hold) ? null : hold.operation),
    model: (hold) => (isRunHold(hold) ? null : { id: hold.modelId }),
    apiKey: ({ apiKeyId }, _args, { keys, caller }) => findNamedKey(keys, requirePrincipal(caller), apiKeyId),
  },

  OrganizationChange: {
    id: ({ _id }) => _id,
  },

  Erasure: {
    id: ({ _id }) => _id,
    // Billing does not know whose the document is: the erasure names it once the organization's data of it was found.
    documentId: (erasure) => (erasedRecords(erasure).length > 0 ? erasure.documentId : null),
    erased: erasedRecords,
  },

  LedgerEntry: {
    __resolveReference({ id }, { deps, caller }) {
      return findEntry(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    amount: ({ postings }) => BigInt(balanceChange(postings)),
    held: ({ postings }) => BigInt(postings.held ?? 0),
    balance: ({ balance }) => BigInt(balance),
  },

  ApiKey: {
    __resolveReference({ id }, { keys, caller }) {
      return findNamedKey(keys, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    organization({ organizationId }, _args, { deps, caller }) {
      return findOrganization(deps, requirePrincipal(caller), organizationId)
    },
    spendLimit,
    spent,
    member: ({ memberId }, _args, { deps, caller }) =>
      memberId === undefined ? null : findMember(deps, requirePrincipal(caller), memberId),
  },

  Session: {
    id: ({ _id }) => _id,
    apiKey: ({ apiKeyId }, _args, { keys, caller }) => findNamedKey(keys, requirePrincipal(caller), apiKeyId),
    isCurrent: ({ _id }, _args, { caller }) => !!caller && 'sessionId' in caller && caller.sessionId === _id,
  },

  UsageGroup: {
    model: ({ modelId }) => (modelId === null ? null : { id: modelId }),
    apiKeyId: ({ apiKeyId }, _args, { caller }) => (apiKeyId && mayNameKey(requirePrincipal(caller), apiKeyId) ? apiKeyId : null),
    apiKey: ({ apiKeyId }, _args, { keys, caller }) => (apiKeyId === null ? null : findNamedKey(keys, requirePrincipal(caller), apiKeyId)),
    totals: (group) => group,
  },

  UsageTotals: {
    calls: ({ calls }) => Number(calls),
    inputTokens: ({ quantities }) => Number(quantities.inputTokens),
    cachedInputTokens: ({ quantities }) => Number(quantities.cachedInputTokens),
    cacheWriteTokens: ({ quantities }) => Number(quantities.cacheWriteTokens),
    outputTokens: ({ quantities }) => Number(quantities.outputTokens),
    audioSeconds: ({ quantities }) => Number(quantities.audioMilliseconds) / 1_000,
    searchUnits: ({ quantities }) => Number(quantities.searchUnits),
    pages: ({ quantities }) => Number(quantities.pages),
  },

  UsageRecord: {
    __resolveReference({ id }, { deps, caller }) {
      return findUsageRecord(deps, requirePrincipal(caller), id)
    },
    id: ({ _id }) => _id,
    model: ({ modelId }) => ({ id: modelId }),
    apiKey: ({ apiKeyId }, _args, { keys, caller }) => findNamedKey(keys, requirePrincipal(caller), apiKeyId),
    quantities: ({ quantities, rates }) =>
      UNITS.filter((unit) => quantities[unit] > 0).map((unit) => ({ unit, quantity: quantities[unit], rate: BigInt(rates[unit]) })),
    amount: ({ amount }) => BigInt(amount),
  },
}
