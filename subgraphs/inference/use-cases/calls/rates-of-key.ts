import type { KeyRates } from '../../../common/identity/principal.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { RateMeter } from '../../domain/engines/rate-meter.ts'
import type { KeyRateRecord } from '../tables.ts'
import { type Amounts, consumeFrom, isFree, type Meters, type RateWaits, waitsOf } from './rate-usage.ts'

/**
 * All processes together reserve at most this part of a limit ahead, so that at most this part is refused although
 * nobody used it. A limit below 80 per process is enforced exactly: each call queries the store.
 */
const AHEAD_PART = 1 / 40
/** The clocks of the processes differ by less. A time that is further ahead is from before the clock was set back. */
const CLOCKS_DIFFER_MS = 5_000
/** An amount that was reserved ahead this long ago has long been free again for all. */
export const AHEAD_MS = 60_000
/** Characters of a write's token. */
const TOKEN_LENGTH = 16
/** A meter's parts of one unit. */
const PARTS = 60_000

/** A call that waits for the store. */
export interface Waiter {
  readonly rates: KeyRates
  readonly tokens: number
  resolve(waits: RateWaits): void
}

/** What a process knows of one key whose rates all processes share. */
export interface SharedKey {
  rates: KeyRates
  /** The record as last read or written. Null: nothing is consumed. */
  record: KeyRateRecord | null
  /** When the record was last read or written. */
  seenAt: number
  /** Consumed from the shared limit and not used yet. Negative: used, but not yet consumed from the shared limit. */
  ahead: { requests: number; tokens: number }
  /** When anything but a use last changed `ahead`. */
  aheadAt: number
  /** While the store is unavailable: the estimated use of all processes. */
  estimate: Meters | null
  waiting: Waiter[]
  isExchanging: boolean
  /** The store has not responded in time. */
  isLate: boolean
  /** Until this time the store is not queried. */
  awayUntil: number
}

/** Returns the initial state of a key, before the first exchange with the store. */
export function newSharedKey(rates: KeyRates): SharedKey {
  const never = Number.NEGATIVE_INFINITY
  const known = { record: null, seenAt: never, ahead: { requests: 0, tokens: 0 }, aheadAt: never, estimate: null }
  return { rates, ...known, waiting: [], isExchanging: false, isLate: false, awayUntil: never }
}

/** One exchange with the store. */
export interface Exchange {
  /** The new record. The same record as before: nothing is written. */
  readonly record: KeyRateRecord | null
  /** The amount that the process reserves ahead afterwards, in addition to what the waiters got. */
  readonly ahead: Amounts
  /** The result for each waiter. */
  readonly results: readonly RateWaits[]
}

/** The most that one of `replicas` processes reserves ahead of a limit. */
function blockOf(limit: number | null, replicas: number): number {
  const block = limit === null ? 0 : Math.floor((limit * AHEAD_PART) / replicas)
  return block > 1 ? block : 0
}

/** Too little is reserved ahead for the next calls. */
export function isLow({ rates, ahead }: SharedKey, replicas: number): boolean {
  const isBelow = (limit: number | null, amount: number) => amount < blockOf(limit, replicas) / 2
  return isBelow(rates.requestsPerMinute, ahead.requests) || isBelow(rates.tokensPerMinute, ahead.tokens)
}

/** More was used than consumed, or more is reserved ahead than the process may have. */
export function isUneven({ rates, ahead }: SharedKey, replicas: number): boolean {
  const isOff = (limit: number | null, amount: number) => limit !== null && (amount < 0 || amount > 2 * blockOf(limit, replicas))
  return isOff(rates.requestsPerMinute, ahead.requests) || isOff(rates.tokensPerMinute, ahead.tokens)
}

/** Returns whether this process has reserved enough ahead for one more call of `tokens`. */
export function hasAhead({ ahead }: SharedKey, { requestsPerMinute, tokensPerMinute }: KeyRates, tokens: number): boolean {
  return (requestsPerMinute === null || ahead.requests >= 1) && (tokensPerMinute === null || ahead.tokens >= tokens)
}

/** Uses what is reserved ahead. Negative amounts are returned. */
export function useAhead({ ahead }: SharedKey, { requestsPerMinute, tokensPerMinute }: KeyRates, amounts: Amounts): void {
  if (requestsPerMinute !== null) ahead.requests -= amounts.requests
  if (tokensPerMinute !== null) ahead.tokens -= amounts.tokens
}

/** Drops what is reserved ahead and unused, but not what was used beyond it. */
export function dropAhead({ ahead }: SharedKey): void {
  ahead.requests = Math.min(0, ahead.requests)
  ahead.tokens = Math.min(0, ahead.tokens)
}

/**
 * The use of all processes as far as this one knows, and the time for which it holds. What is reserved ahead counts as
 * free.
 */
export function metersOf(
  { record, estimate, ahead, rates }: SharedKey,
  clockMs: number,
): { readonly meters: Meters; readonly now: number } {
  const time = timeOf(record, clockMs)
  const meters = estimate ? copyOf(estimate, rates, time.now) : metersOfRecord(record, time)
  consumeFrom(meters, rates, { requests: -ahead.requests, tokens: -ahead.tokens }, time.now)
  return { meters, now: time.now }
}

/** Judges the waiters, in their order, by the record, and reserves ahead for the next calls. */
export function judge(
  { rates, ahead, estimate }: SharedKey,
  record: KeyRateRecord | null,
  waiters: readonly Waiter[],
  replicas: number,
  clockMs: number,
): Exchange {
  const time = timeOf(record, clockMs)
  const { now } = time
  const meters = metersOfRecord(record, time)
  const { requestsPerMinute, tokensPerMinute } = rates
  if (estimate) consumeFrom(meters, rates, beyond(estimate, meters, rates, now), now)
  const consumed = { requests: 0, tokens: 0 }
  const consume = (amounts: Amounts) => {
    consumeFrom(meters, rates, amounts, now)
    consumed.requests += amounts.requests
    consumed.tokens += amounts.tokens
  }
  // All of it is returned first, so that the waiters can get it.
  consume({ requests: -ahead.requests, tokens: -ahead.tokens })
  const results = waiters.map(({ rates, tokens }) => {
    const amounts = { requests: 1, tokens }
    const waits = waitsOf(meters, rates, amounts, now)
    if (isFree(waits)) consumeFrom(meters, rates, amounts, now)
    return waits
  })
  const reserve = (meter: RateMeter, limit: number | null) =>
    limit === null ? 0 : Math.min(blockOf(limit, replicas), meter.remaining(limit, now))
  consume({ requests: reserve(meters.requests, requestsPerMinute), tokens: reserve(meters.tokens, tokensPerMinute) })
  const isUnchanged = consumed.requests === 0 && consumed.tokens === 0 && !estimate && !results.some(isFree)
  return { record: isUnchanged ? record : toRecord(meters, rates, now, record), ahead: consumed, results }
}

/**
 * What `rates` does not limit stays as it was `before`: a call of a descendant key uses only this key's own limits, and
 * this key's calls use those of the plan, too.
 */
function toRecord({ requests, tokens }: Meters, rates: KeyRates, now: number, before: KeyRateRecord | null): KeyRateRecord {
  const { apiKeyId, requestsPerMinute, tokensPerMinute } = rates
  const requestMs = requestsPerMinute === null ? 0 : requests.resetMs(requestsPerMinute, now)
  const tokenMs = tokensPerMinute === null ? 0 : tokens.resetMs(tokensPerMinute, now)
  const expiresMs = now + Math.max(requestMs, tokenMs) + AHEAD_MS
  return {
    _id: apiKeyId,
    token: randomHex(TOKEN_LENGTH),
    ...(requestsPerMinute === null
      ? { requestsTaken: before?.requestsTaken ?? 0, requestsDrainedAt: before?.requestsDrainedAt ?? now }
      : { requestsTaken: requests.usedAt(requestsPerMinute, now), requestsDrainedAt: now }),
    ...(tokensPerMinute === null
      ? { tokensTaken: before?.tokensTaken ?? 0, tokensDrainedAt: before?.tokensDrainedAt ?? now }
      : { tokensTaken: tokens.usedAt(tokensPerMinute, now), tokensDrainedAt: now }),
    expiresAt: new Date(Math.max(expiresMs, before?.expiresAt.getTime() ?? 0)),
  }
}

function metersOfRecord(record: KeyRateRecord | null, { now, isSetBack }: Time): Meters {
  if (!record) return { requests: new RateMeter(0, now), tokens: new RateMeter(0, now) }
  const { requestsTaken, requestsDrainedAt, tokensTaken, tokensDrainedAt } = record
  return {
    requests: new RateMeter(requestsTaken, isSetBack ? now : requestsDrainedAt),
    tokens: new RateMeter(tokensTaken, isSetBack ? now : tokensDrainedAt),
  }
}

function copyOf({ requests, tokens }: Meters, { requestsPerMinute, tokensPerMinute }: KeyRates, now: number): Meters {
  return {
    requests: new RateMeter(requestsPerMinute === null ? 0 : requests.usedAt(requestsPerMinute, now), now),
    tokens: new RateMeter(tokensPerMinute === null ? 0 : tokens.usedAt(tokensPerMinute, now), now),
  }
}

/** The amounts by which the estimate exceeds the meters. */
function beyond(estimate: Meters, meters: Meters, { requestsPerMinute, tokensPerMinute }: KeyRates, now: number): Amounts {
  const more = (kind: keyof Meters, limit: number | null) =>
    limit === null ? 0 : Math.max(0, Math.ceil((estimate[kind].usedAt(limit, now) - meters[kind].usedAt(limit, now)) / PARTS))
  return { requests: more('requests', requestsPerMinute), tokens: more('tokens', tokensPerMinute) }
}

interface Time {
  readonly now: number
  /** The record is from before the clock was set back: nothing drains, and time continues from here. */
  readonly isSetBack: boolean
}

/** The latest of the clocks applies, so that nothing drains twice. */
function timeOf(record: KeyRateRecord | null, clockMs: number): Time {
  const drainedAt = record ? Math.max(record.requestsDrainedAt, record.tokensDrainedAt) : clockMs
  const isSetBack = drainedAt > clockMs + CLOCKS_DIFFER_MS
  return { now: isSetBack ? clockMs : Math.max(clockMs, drainedAt), isSetBack }
}
