import { type Principal, requireScope, type Scope } from '../../../common/identity/principal.ts'
import { requireGrantable } from '../../ledger/domain/grants.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import type { ApiKey } from '../../use-cases/tables.ts'
import {
  checkAllowlist,
  checkExpiry,
  checkRatesOfKey,
  checkScopes,
  checkSpendLimit,
  type KeyRates,
  type SpendLimitInput,
} from './api-key-input.ts'
import { changeLiveKey, ownKey, ownKeyError, requireManageable, requireSecret } from './manage-api-key.ts'
import { rankOfKey, requireRank } from './rank-of-key.ts'
import { putInForce } from './rules-in-force.ts'
import { requireSpendable } from './spend-limit.ts'

interface UpdateApiKeyInput extends KeyRates {
  readonly id: string
  readonly name?: string | null
  readonly scopes?: readonly Scope[] | null
  /** Null: every model. */
  readonly modelAllowlist?: readonly string[] | null
  /** Null: the key never expires. */
  readonly expiresAt?: Date | null
  /** Null removes the limit. */
  readonly spendLimit?: SpendLimitInput | null
}

/**
 * Changes the fields of a key that are not absent. Resolves once they are in force.
 * @throws {NotFound} the organization has no such key
 * @throws {KisError} `permission_denied`: the key could do more, or would have a higher rank, than the caller's
 * @throws {KisError} `invalid_request`: the key is revoked; `in_use`: the key would lose its own scope `admin`
 */
export async function updateApiKey(deps: BillingDeps, principal: Principal, input: UpdateApiKeyInput): Promise<ApiKey> {
  requireScope(principal, 'admin')
  const change = {
    ...(typeof input.name === 'string' && { name: checkName(input.name, 'name') }),
    ...(input.scopes && { scopes: checkScopes(input.scopes) }),
    ...(input.modelAllowlist !== undefined && { modelAllowlist: checkAllowlist(input.modelAllowlist) }),
    ...checkRatesOfKey(input),
    ...(input.expiresAt !== undefined && { expiresAt: checkExpiry(input.expiresAt, deps.clock) }),
  }
  const limit = input.spendLimit === undefined ? undefined : checkSpendLimit(input.spendLimit)
  const key = await requireManageable(deps, principal, input.id)
  if (change.scopes) requireSecret(key, "Its scopes are those of the member's role: change the role.")
  const own = await ownKey(deps, principal)
  requireGrantable(principal, own, { ...key, ...change })
  requireRank(await rankOfKey(deps, own), await rankOfKey(deps, { ...key, ...change }))
  if (key._id === principal.apiKeyId && change.scopes && !change.scopes.some((scope) => scope === 'admin' || scope === 'operator'))
    throw ownKeyError('take the scope `admin` from itself')
  if (limit !== undefined) await requireSpendable(deps, own, key, limit)
  const changed = await changeLiveKey(deps, key, { $set: change })
  const isRule = limit !== undefined || Object.keys(change).some((field) => field !== 'name')
  if (isRule) await putInForce(deps, key.organizationId, (wallet) => limit !== undefined && wallet.putSpendLimit(key._id, limit))
  return changed
}
