import { KisError } from '../../common/errors.ts'
import { checkPlain } from '../../common/plain-text.ts'
import { MAX_NANO_USD, type Quantities, type Rates, UNITS } from '../ledger/domain/money.ts'
import type { RateCard } from '../ledger/domain/rate-card.ts'
import type { RateCardInput } from '../ledger/holds/place-hold.ts'

/** Longest name of an organization or a key, and longest reference of a top-up. */
const MAX_NAME_CHARACTERS = 100
/** Longest id from another service: of a model, a request, a rate card's version. */
const MAX_EXTERNAL_ID_CHARACTERS = 200

/** @throws {KisError} `invalid_request`: it is blank or has hidden characters; `string_above_max_length`: it has more than 100 characters */
export function checkName(value: string, param: string): string {
  if (value.trim() === '') throw new KisError('invalid_request', `\`${param}\` must not be empty.`, { param })
  checkLength(value, param, MAX_NAME_CHARACTERS)
  checkPlain(value, param)
  return value
}

export function checkExternalId(value: string, param: string): string {
  return checkLength(value, param, MAX_EXTERNAL_ID_CHARACTERS)
}

function checkLength(value: string, param: string, most: number): string {
  if (value.length > most) throw new KisError('string_above_max_length', `\`${param}\` has at most ${most} characters.`, { param })
  return value
}

export function checkQuantities(quantities: Quantities, param: string): Quantities {
  for (const unit of UNITS) checkInteger(quantities[unit], `${param}.${unit}`, 0, Number.MAX_SAFE_INTEGER)
  return quantities
}

/** Tiers of one rate card. Vendors have one or two, and every open hold carries them. */
const MAX_TIERS = 8

/** @throws {KisError} a rate or a tier is out of range, or the tiers are not in rising order */
export function checkRateCard({ tiers, ...base }: RateCardInput, param: string): RateCard {
  if (tiers.length > MAX_TIERS)
    throw new KisError('array_above_max_length', `A rate card has at most ${MAX_TIERS} tiers.`, { param: `${param}.tiers` })
  let least = 1
  return {
    rates: checkRates(base, param),
    tiers: tiers.map((tier, i) => {
      const path = `${param}.tiers[${i}]`
      const aboveInputTokens = checkInteger(tier.aboveInputTokens, `${path}.aboveInputTokens`, least, Number.MAX_SAFE_INTEGER)
      least = aboveInputTokens + 1
      return { aboveInputTokens, rates: checkRates(tier, path) }
    }),
  }
}

function checkRates(rates: Rates, param: string): Rates {
  for (const unit of UNITS)
    if (rates[unit] < 0n || rates[unit] > MAX_NANO_USD)
      throw new KisError('unsupported_value', 'A rate is 0 to 9,000,000 USD per million units.', { param: `${param}.${unit}` })
  return rates
}

export function checkInteger(value: number, param: string, least: number, most: number): number {
  if (value < least) throw new KisError('integer_below_min_value', `\`${param}\` is at least ${least}.`, { param })
  if (value > most) throw new KisError('integer_above_max_value', `\`${param}\` is at most ${most}.`, { param })
  return value
}

const HOLD_ID = /^hold_[0-9a-f]{32}$/

/** Hold ids become field names of the wallet, so only well-formed ones are accepted. */
export function checkHoldId(id: string): string {
  if (!HOLD_ID.test(id)) throw new KisError('invalid_request', 'A hold id is `hold_` and a UUIDv7 in hexadecimal digits.', { param: 'id' })
  return id
}

/** With less than the round trip of a renewal under load, a hold would end under its call. */
const MIN_TTL_SECONDS = 10
const MAX_TTL_SECONDS = 86_400

/**
 * Seconds until the hold expires.
 * @throws {KisError} `integer_below_min_value`, `integer_above_max_value`
 */
export function checkTtl(ttlSeconds: number): number {
  return checkInteger(ttlSeconds, 'ttlSeconds', MIN_TTL_SECONDS, MAX_TTL_SECONDS)
}
