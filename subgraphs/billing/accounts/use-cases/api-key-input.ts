import { MAX_INT } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Scope } from '../../../common/identity/principal.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { SpendLimit, SpendPeriod } from '../../ledger/domain/key-spending.ts'
import { MAX_NANO_USD, toStored } from '../../ledger/domain/money.ts'
import { checkExternalId, checkInteger } from '../../use-cases/checks.ts'

/** Models of one allowlist: more than any catalog has, few enough for every request to carry. */
const MAX_ALLOWLIST_MODELS = 200

/** A key's limits for each minute; null: only the plan's limits apply. */
export interface KeyRates {
  readonly requestsPerMinute?: number | null
  readonly tokensPerMinute?: number | null
}

/**
 * Checks the rates that are given.
 * @throws {KisError} `integer_below_min_value`, `integer_above_max_value`
 */
export function checkRatesOfKey({ requestsPerMinute, tokensPerMinute }: KeyRates): KeyRates {
  return {
    ...(requestsPerMinute !== undefined && { requestsPerMinute: checkRate(requestsPerMinute, 'requestsPerMinute') }),
    ...(tokensPerMinute !== undefined && { tokensPerMinute: checkRate(tokensPerMinute, 'tokensPerMinute') }),
  }
}

function checkRate(rate: number | null, param: string): number | null {
  return rate === null ? null : checkInteger(rate, param, 1, MAX_INT)
}

export function checkScopes(scopes: readonly Scope[]): readonly Scope[] {
  if (scopes.length === 0) throw new KisError('invalid_request', 'A key needs at least one scope.', { param: 'scopes' })
  return [...new Set(scopes)]
}

export function checkAllowlist(models: readonly string[] | null): readonly string[] | null {
  if (models && models.length > MAX_ALLOWLIST_MODELS)
    throw new KisError('array_above_max_length', `An allowlist has at most ${MAX_ALLOWLIST_MODELS} models.`, { param: 'modelAllowlist' })
  return models && [...new Set(models.map((model) => checkExternalId(model, 'modelAllowlist')))]
}

export function checkExpiry(expiresAt: Date | null, clock: Clock): Date | null {
  if (expiresAt && expiresAt <= clock.now()) throw new KisError('unsupported_value', 'The expiry lies in the past.', { param: 'expiresAt' })
  return expiresAt
}

export interface SpendLimitInput {
  /** Nano-USD. */
  readonly amount: bigint
  readonly period: SpendPeriod
}

/** With a limit of zero, no call with a price can run. */
export function checkSpendLimit(limit: SpendLimitInput | null): SpendLimit | null {
  if (!limit) return null
  if (limit.amount < 0n || limit.amount > MAX_NANO_USD)
    throw new KisError('unsupported_value', 'A spend limit is 0 to 9,000,000 USD.', { param: 'spendLimit.amount' })
  return { amount: toStored(limit.amount), period: limit.period }
}
