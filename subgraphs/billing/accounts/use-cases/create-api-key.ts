import { KisError } from '../../../common/errors.ts'
import type { Principal, Scope } from '../../../common/identity/principal.ts'
import { requireGrantable } from '../../ledger/domain/grants.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { MAX_API_KEYS } from '../domain/api-key.ts'
import {
  checkAllowlist,
  checkExpiry,
  checkRatesOfKey,
  checkScopes,
  checkSpendLimit,
  type KeyRates,
  type SpendLimitInput,
} from './api-key-input.ts'
import { ownKey } from './manage-api-key.ts'
import { type ApiKeyWithSecret, newApiKey } from './new-api-key.ts'
import { findSpendLimit, putSpendLimit, requireSpendable } from './spend-limit.ts'

interface CreateApiKeyInput extends KeyRates {
  readonly name: string
  readonly scopes?: readonly Scope[] | null
  readonly modelAllowlist?: readonly string[] | null
  readonly expiresAt?: Date | null
  /** Absent: the limit of the caller's own key. */
  readonly spendLimit?: SpendLimitInput | null
}

/**
 * Longest chain of ancestors: each hold names all of them, and a charge counts for each. Organizations need two or
 * three levels.
 */
export const MAX_ANCESTORS = 8
const DEFAULT_SCOPES: readonly Scope[] = ['inference', 'knowledge:read', 'knowledge:write']

/**
 * Creates a key in the caller's organization, as a descendant of the caller's key and with no more rights. An absent
 * allowlist, expiry, rate or spend limit is that of the caller's key.
 * @throws {KisError} `invalid_request`, `unsupported_value` and others: the input is wrong, or there are too many keys
 * @throws {KisError} `permission_denied`: the new key could do more than the caller's
 */
export async function createApiKey(deps: BillingDeps, principal: Principal, input: CreateApiKeyInput): Promise<ApiKeyWithSecret> {
  const own = await ownKey(deps, principal)
  const ancestors = [...(own.ancestors ?? []), own._id]
  if (ancestors.length > MAX_ANCESTORS)
    throw new KisError(
      'invalid_request',
      `A key has at most ${MAX_ANCESTORS} ancestors, and yours has that many. Create the key with one that is closer to the organization's first key.`,
    )
  const { modelAllowlist = own.modelAllowlist, expiresAt = own.expiresAt } = input
  const { requestsPerMinute = own.requestsPerMinute ?? null, tokensPerMinute = own.tokensPerMinute ?? null } = input
  const created = newApiKey(deps, {
    organizationId: principal.organizationId,
    name: checkName(input.name, 'name'),
    ancestors,
    scopes: checkScopes(input.scopes ?? DEFAULT_SCOPES),
    modelAllowlist: checkAllowlist(modelAllowlist),
    ...checkRatesOfKey({ requestsPerMinute, tokensPerMinute }),
    expiresAt: checkExpiry(expiresAt, deps.clock),
  })
  requireGrantable(principal, own, created.apiKey)
  const { organizationId } = principal
  const { apiKeys } = deps.collections
  const limit =
    input.spendLimit === undefined ? await findSpendLimit(deps, organizationId, principal.apiKeyId) : checkSpendLimit(input.spendLimit)
  await requireSpendable(deps, own, created.apiKey, limit)
  if ((await apiKeys.countDocuments({ organizationId, revokedAt: null })) >= MAX_API_KEYS)
    throw new KisError('invalid_request', `An organization has at most ${MAX_API_KEYS} keys that are not revoked.`)
  const { _id } = created.apiKey
  await apiKeys.insertOne(created.apiKey)
  try {
    // The limit is set before anybody learns the secret.
    if (limit) await putSpendLimit(deps, organizationId, _id, limit)
  } catch (error) {
    await apiKeys.findOneAndDelete({ _id })
    throw error
  }
  return created
}
