import { type Principal, requireScope, type Scope } from '../../common/principal.ts'
import { requireGrantable } from '../domain/grants.ts'
import { checkAllowlist, checkExpiry, checkRatesOfKey, checkScopes, type KeyRates } from './api-key-input.ts'
import { checkName } from './checks.ts'
import type { BillingDeps } from './deps.ts'
import { type ApiKeyWithSecret, newApiKey } from './new-api-key.ts'

export interface CreateApiKeyInput extends KeyRates {
  readonly name: string
  readonly scopes?: readonly Scope[] | null
  readonly modelAllowlist?: readonly string[] | null
  readonly expiresAt?: Date | null
}

const DEFAULT_SCOPES: readonly Scope[] = ['inference', 'knowledge:read', 'knowledge:write']

/** Makes a key of the caller's organization, with no more than the caller's own key may do. An allowlist left out is the caller's own. */
export async function createApiKey(deps: BillingDeps, principal: Principal, input: CreateApiKeyInput): Promise<ApiKeyWithSecret> {
  requireScope(principal, 'admin')
  const wanted = input.modelAllowlist === undefined ? principal.modelAllowlist : input.modelAllowlist
  const created = newApiKey(deps, {
    organizationId: principal.organizationId,
    name: checkName(input.name, 'name'),
    scopes: checkScopes(input.scopes ?? DEFAULT_SCOPES),
    modelAllowlist: checkAllowlist(wanted),
    ...checkRatesOfKey(input),
    expiresAt: checkExpiry(input.expiresAt ?? null, deps.clock),
  })
  requireGrantable(principal, created.apiKey)
  await deps.collections.apiKeys.insertOne(created.apiKey)
  return created
}
