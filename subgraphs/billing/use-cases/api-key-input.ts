import type { Clock } from '../../common/clock.ts'
import { KisError } from '../../common/errors.ts'
import type { Scope } from '../../common/principal.ts'
import { checkForeignId } from './checks.ts'

/** Models of one allowlist; larger than any catalog, small enough for every request to carry. */
const MAX_ALLOWLIST_MODELS = 200

export function checkScopes(scopes: readonly Scope[]): readonly Scope[] {
  if (scopes.length === 0) throw new KisError('invalid_request', 'A key needs at least one scope.', { param: 'scopes' })
  return [...new Set(scopes)]
}

export function checkAllowlist(models: readonly string[] | null): readonly string[] | null {
  if (models && models.length > MAX_ALLOWLIST_MODELS)
    throw new KisError('array_above_max_length', `An allowlist has at most ${MAX_ALLOWLIST_MODELS} models.`, { param: 'modelAllowlist' })
  return models && [...new Set(models.map((model) => checkForeignId(model, 'modelAllowlist')))]
}

export function checkExpiry(expiresAt: Date | null, clock: Clock): Date | null {
  if (expiresAt && expiresAt <= clock.now()) throw new KisError('unsupported_value', 'The expiry lies in the past.', { param: 'expiresAt' })
  return expiresAt
}
