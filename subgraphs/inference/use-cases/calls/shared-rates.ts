import { LRUCache } from 'lru-cache'
import type { RateLimits } from '../../../../schema/errors.ts'
import type { KeyRates } from '../../../common/identity/principal.ts'
import { type DocumentCollection, DuplicateKey } from '../../../common/ports/document-store.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Task } from '../../../common/process/tasks.ts'
import type { KeyRateRecord } from '../tables.ts'
import { consumeFrom, isFree, MAX_KEYS, NO_WAITS, type RateUsage, type RateWaits, readMeters, waitsOf } from './rate-usage.ts'
import {
  AHEAD_MS,
  dropAhead,
  type Exchange,
  hasAhead,
  isLow,
  isUneven,
  judge,
  metersOf,
  newSharedKey,
  type SharedKey,
  useAhead,
  type Waiter,
} from './rates-of-key.ts'

/**
 * What the store returned this recently is enough to refuse a call. It limits the store's load from a flood of refused
 * calls.
 */
const REFUSE_BY_MS = 100
/** Greatest age of the limits that a caller sees, unless the store takes longer. */
const REPORT_BY_MS = 500
/** The longest wait of a call for the store. Then the process's part of the limit applies. */
const STORE_MS = 500
/** How long the store is not queried after it failed. */
const AWAY_MS = 1_000
/** Pause between two removals of idle records. */
const SWEEP_MS = 60_000
/** Most attempts to write what other processes write, too. Each failed attempt means that another process succeeded. */
const MAX_TRIES = 20

/**
 * The rates of keys, shared by all processes of inference on one store. The store has one meter for each key. A process
 * reserves small blocks of it ahead of its calls, so most calls of a large limit wait for no store. Whatever a process
 * has reserved is already consumed from the shared meter, so all processes together admit what the limit says.
 * If the store does not respond, the process counts each call `replicas` times against the last known use, which
 * divides the limit by `replicas`. When the store is back, the larger of both counts applies.
 */
export class SharedRates implements RateUsage {
  readonly #records: DocumentCollection<KeyRateRecord>
  readonly #replicas: () => number
  readonly #clock: Clock
  readonly #log: Log
  readonly #keys = new LRUCache<string, SharedKey>({ max: MAX_KEYS })

  constructor(records: DocumentCollection<KeyRateRecord>, replicas: () => number, clock: Clock, log: Log) {
    this.#records = records
    this.#replicas = replicas
    this.#clock = clock
    this.#log = log
  }

  consume(rates: KeyRates, tokens: number): RateWaits | Promise<RateWaits> {
    if (rates.requestsPerMinute === null && rates.tokensPerMinute === null) return NO_WAITS
    const now = this.#now()
    const key = this.#get(rates)
    if (now - key.aheadAt > AHEAD_MS) dropAhead(key)
    if (key.waiting.length === 0 && hasAhead(key, rates, tokens)) {
      useAhead(key, rates, { requests: 1, tokens })
      if (now - key.seenAt > REPORT_BY_MS || isLow(key, this.#replicas())) this.#startExchange(key)
      return NO_WAITS
    }
    if (key.isLate || now < key.awayUntil) return this.#consumePart(key, rates, tokens, now)
    if (!key.isExchanging && now - key.seenAt < REFUSE_BY_MS) {
      const known = metersOf(key, now)
      const waits = waitsOf(known.meters, rates, { requests: 1, tokens }, known.now)
      if (!isFree(waits)) return waits
    }
    return new Promise((resolve) => {
      key.waiting.push({ rates, tokens, resolve })
      this.#startExchange(key)
    })
  }

  correct(rates: KeyRates, requests: number, tokens: number): void {
    if (rates.requestsPerMinute === null && rates.tokensPerMinute === null) return
    const key = this.#get(rates)
    const now = this.#now()
    const replicas = this.#replicas()
    if (key.estimate) {
      consumeFrom(key.estimate, rates, { requests: requests * replicas, tokens: tokens * replicas }, now)
      return
    }
    useAhead(key, rates, { requests, tokens })
    key.aheadAt = now
    if (isUneven(key, replicas)) this.#startExchange(key)
  }

  read(rates: KeyRates): RateLimits | null {
    const known = metersOf(this.#keys.get(rates.apiKeyId) ?? newSharedKey(rates), this.#now())
    return readMeters(known.meters, rates, known.now)
  }

  /** Removes the records of keys that have consumed nothing any more. */
  async purgeIdle(): Promise<void> {
    while ((await this.#records.deleteMany({ expiresAt: { $lt: this.#clock.now() } })) > 0);
  }

  #get(rates: KeyRates): SharedKey {
    let key = this.#keys.get(rates.apiKeyId)
    if (!key) {
      key = newSharedKey(rates)
      this.#keys.set(rates.apiKeyId, key)
    }
    // Calls of descendant keys know only this key's own limits, and not those of the plan.
    const { apiKeyId, requestsPerMinute, tokensPerMinute } = rates
    key.rates = {
      apiKeyId,
      requestsPerMinute: requestsPerMinute ?? key.rates.requestsPerMinute,
      tokensPerMinute: tokensPerMinute ?? key.rates.tokensPerMinute,
    }
    return key
  }

  /** Consumes this process's part of the limit, because the store does not respond. */
  #consumePart(key: SharedKey, rates: KeyRates, tokens: number, now: number): RateWaits {
    if (!key.estimate) {
      key.estimate = metersOf(key, now).meters
      key.ahead = { requests: 0, tokens: 0 }
    }
    const replicas = this.#replicas()
    const amounts = { requests: replicas, tokens: tokens * replicas }
    const waits = waitsOf(key.estimate, rates, amounts, now)
    if (isFree(waits)) consumeFrom(key.estimate, rates, amounts, now)
    return waits
  }

  /** Exchanges use and needs with the store, once at a time for each key. */
  #startExchange(key: SharedKey): void {
    if (key.isExchanging || this.#now() < key.awayUntil) return
    key.isExchanging = true
    void this.#exchangeRepeatedly(key)
  }

  async #exchangeRepeatedly(key: SharedKey): Promise<void> {
    do await this.#round(key, key.waiting.splice(0))
    while (key.waiting.length > 0 || (isUneven(key, this.#replicas()) && this.#now() >= key.awayUntil))
    // In the same tick as the last check for waiters, so that no waiter is missed.
    key.isExchanging = false
  }

  /** Never rejects: without the store, this process itself decides about the waiters. */
  async #round(key: SharedKey, waiters: readonly Waiter[]): Promise<void> {
    let isResolved = false
    const resolveLocally = () => {
      const now = this.#now()
      key.awayUntil = now + AWAY_MS
      const all = [...(isResolved ? [] : waiters), ...key.waiting.splice(0)]
      isResolved = true
      for (const { rates, tokens, resolve: settle } of all) settle(this.#consumePart(key, rates, tokens, now))
    }
    const late = setTimeout(() => {
      key.isLate = true
      resolveLocally()
    }, STORE_MS)
    try {
      this.#note(key, await this.#exchange(key, waiters), isResolved ? [] : waiters)
    } catch (error) {
      this.#log.debug({ err: error }, 'the rates of a key are not shared now')
      resolveLocally()
    } finally {
      clearTimeout(late)
      key.isLate = false
    }
  }

  /** What calls consumed without the late store stays in the estimate, which the next exchange reports. */
  #note(key: SharedKey, { record, ahead, results }: Exchange, waiters: readonly Waiter[]): void {
    const wasLate = key.isLate
    key.record = record
    key.seenAt = this.#now()
    key.awayUntil = Number.NEGATIVE_INFINITY
    if (wasLate && key.estimate) return
    key.estimate = null
    if (ahead.requests > 0 || ahead.tokens > 0) key.aheadAt = key.seenAt
    key.ahead.requests += ahead.requests
    key.ahead.tokens += ahead.tokens
    for (const [i, waiter] of waiters.entries()) waiter.resolve(results[i]!)
  }

  /** @throws the store does not respond, or other processes write all the time */
  async #exchange(key: SharedKey, waiters: readonly Waiter[]): Promise<Exchange> {
    const { apiKeyId: _id } = key.rates
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      // What was read last is usually current. A write proves it, but without a write only the store knows.
      const isKnown = tries === 0 && key.record !== null && waiters.length > 0
      const record = isKnown ? key.record : await this.#records.findOne({ _id })
      const exchange = judge(key, record, waiters, this.#replicas(), this.#now())
      if (exchange.record !== record) {
        if (await this.#write(record, exchange.record!)) return exchange
        await this.#clock.sleep(Math.random() * tries)
      } else if (!isKnown) return exchange
    }
    throw new Error('other processes write the rates of the key all the time')
  }

  /** Returns false if another process has written meanwhile. */
  async #write(before: KeyRateRecord | null, { _id, ...fields }: KeyRateRecord): Promise<boolean> {
    if (before) return (await this.#records.findOneAndUpdate({ _id, token: before.token }, { $set: fields })) !== null
    try {
      await this.#records.insertOne({ _id, ...fields })
      return true
    } catch (error) {
      if (error instanceof DuplicateKey) return false
      throw error
    }
  }

  #now(): number {
    return this.#clock.now().getTime()
  }
}

/** Returns the task that deletes the rates of keys that make no calls. */
export function idleRatesSweep(rates: SharedRates): Task {
  return { name: 'sweep_idle_rates', everyMs: SWEEP_MS, isShared: true, run: () => rates.purgeIdle() }
}
