import type { KeyRates } from '../../../common/identity/principal.ts'
import { randomHex } from '../../../common/process/ids.ts'
import { RateMeter } from '../../domain/engines/rate-meter.ts'
import type { KeyRateRecord } from '../tables.ts'
import { type Amounts, consumeFrom, isFree, type Meters, type RateWaits, waitsOf } from './rate-usage.ts'

/**
 * All processes together keep at most this part of a limit ahead, so that at most as much is refused although nobody
 * used it. A limit below 80 for each process is kept exactly: each call asks the store.
 */
const AHEAD_PART = 1 / 40
/** The clocks of the processes differ by less. A time that is further ahead is from before the clock was set back. */
const CLOCKS_DIFFER_MS = 5_000
/** What was kept ahead for as long has long been free again for all. */
export const AHEAD_MS = 60_000
/** Characters of a token of a write. */
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
  /** As last read or written; null: nothing is taken. */
  record: KeyRateRecord | null
  /** When that was. */
  seenAt: number
  /** Taken from the shared limit and not used yet. Negative: used, and not yet taken from it. */
  ahead: { requests: number; tokens: number }
  /** When that was last changed by more than a use. */
  aheadAt: number
  /** While the store is away: the estimated use of all processes. */
  estimate: Meters | null
  waiting: Waiter[]
  isExchanging: boolean
  /** The store has not answered in time. */
  isLate: boolean
  /** Until then the store is not asked. */
  awayUntil: number
}

export function newSharedKey(rates: KeyRates): SharedKey {
  const never = Number.NEGATIVE_INFINITY
  const known = { record: null, seenAt: never, ahead: { requests: 0, tokens: 0 }, aheadAt: never, estimate: null }
  return { rates, ...known, waiting: [], isExchanging: false, isLate: false, awayUntil: never }
}

/** One exchange with the store. */
export interface Exchange {
  /** What the record becomes. The same record as before: nothing is to be written. */
  readonly record: KeyRateRecord | null
  /** What the process has more ahead afterwards, besides what the waiters got. */
  readonly ahead: Amounts
  /** What each waiter hears. */
  readonly results: readonly RateWaits[]
}

/** The most that one of `replicas` processes keeps ahead of a limit. */
function blockOf(limit: number | null, replicas: number): number {
  const block = limit === null ? 0 : Math.floor((limit * AHEAD_PART) / replicas)
  return block > 1 ? block : 0
}

/** Too little is ahead for the next calls. */
export function isLow({ rates, ahead }: SharedKey, replicas: number): boolean {
  const isBelow = (limit: number | null, amount: number) => amount < blockOf(limit, replicas) / 2
  return isBelow(rates.requestsPerMinute, ahead.requests) || isBelow(rates.tokensPerMinute, ahead.tokens)
}

/** More was used than taken, or more is ahead than the process may keep. */
export function isUneven({ rates, ahead }: SharedKey, replicas: number): boolean {
  const isOff = (limit: number | null, amount: number) => limit !== null && (amount < 0 || amount > 2 * blockOf(limit, replicas))
  return isOff(rates.requestsPerMinute, ahead.requests) || isOff(rates.tokensPerMinute, ahead.tokens)
}

export function hasAhead({ ahead }: SharedKey, { requestsPerMinute, tokensPerMinute }: KeyRates, tokens: number): boolean {
  return (requestsPerMinute === null || ahead.requests >= 1) && (tokensPerMinute === null || ahead.tokens >= tokens)
}

/** Uses what is ahead. Negative amounts are given back. */
export function useAhead({ ahead }: SharedKey, { requestsPerMinute, tokensPerMinute }: KeyRates, amounts: Amounts): void {
  if (requestsPerMinute !== null) ahead.requests -= amounts.requests
  if (tokensPerMinute !== null) ahead.tokens -= amounts.tokens
}

/** Forgets what nobody has used, but not what was used beyond. */
export function dropAhead({ ahead }: SharedKey): void {
  ahead.requests = Math.min(0, ahead.requests)
  ahead.tokens = Math.min(0, ahead.tokens)
}

/** What all processes have taken as far as this one knows, and the time for which it holds. What is ahead is free. */
export function metersOf(
  { record, estimate, ahead, rates }: SharedKey,
  clockMs: number,
): { readonly meters: Meters; readonly now: number } {
  const time = timeOf(record, clockMs)
  const meters = estimate ? copyOf(estimate, rates, time.now) : metersOfRecord(record, time)
  consumeFrom(meters, rates, { requests: -ahead.requests, tokens: -ahead.tokens }, time.now)
  return { meters, now: time.now }
}

/** Judges the waiters, in their order, by what the record says, and takes for the next calls ahead. */
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
  // All of it goes back first, so that the waiters may have it.
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
 * What `rates` does not limit stays as it was `before`: a call of a key that descends from this one uses the key's own
 * limits, and the key's calls those of the plan, too.
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

/** What the estimate has more than the meters. */
function beyond(estimate: Meters, meters: Meters, { requestsPerMinute, tokensPerMinute }: KeyRates, now: number): Amounts {
  const more = (kind: keyof Meters, limit: number | null) =>
    limit === null ? 0 : Math.max(0, Math.ceil((estimate[kind].usedAt(limit, now) - meters[kind].usedAt(limit, now)) / PARTS))
  return { requests: more('requests', requestsPerMinute), tokens: more('tokens', tokensPerMinute) }
}

interface Time {
  readonly now: number
  /** The record is from before the clock was set back: nothing drains, and time goes on from here. */
  readonly isSetBack: boolean
}

/** The fastest clock counts, so that nothing drains twice. */
function timeOf(record: KeyRateRecord | null, clockMs: number): Time {
  const drainedAt = record ? Math.max(record.requestsDrainedAt, record.tokensDrainedAt) : clockMs
  const isSetBack = drainedAt > clockMs + CLOCKS_DIFFER_MS
  return { now: isSetBack ? clockMs : Math.max(clockMs, drainedAt), isSetBack }
}
