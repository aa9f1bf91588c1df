import { KisError, ServiceUnavailable, StalePrincipal } from '../../common/errors.ts'
import type { Principal } from '../../common/identity/principal.ts'
import { toQuantities } from '../domain/tokens/usage.ts'
import type { Billing, BillingContext, Quantities, RateCard, Rates } from '../ports/billing.ts'

interface Hold {
  readonly amount: bigint
  readonly rateCard: RateCard
  readonly organizationId: string
  readonly ttlSeconds: number
  readonly runHoldId: string | undefined
  readonly holder: string | null
  checkpoint: Quantities
  state: 'dispatched' | 'settled' | 'voided' | 'expired'
  charged: bigint
  used: { readonly quantities: Quantities; readonly source: string } | null
}

type Method = 'placeHold' | 'placeRunHold' | 'endRunHold' | 'dispatchHold' | 'checkpointHold' | 'settleHold' | 'voidHold'

/** One wallet in memory. Every write checks its invariants. */
export class FakeBilling implements Billing {
  /** Nano-USD. */
  balance: bigint
  readonly holds = new Map<string, Hold>()
  /** What the holds of open runs have left, in nano-USD. */
  readonly runs = new Map<string, bigint>()
  readonly #expired = new Set<string>()
  /** The models of the holds, in order. */
  readonly modelIds: string[] = []
  /** Names of the writes, in order. */
  readonly writes: Method[] = []
  /** What the next call of a method does instead: `lost` runs it and loses the answer, `down` does not run it. */
  readonly faults = new Map<Method, ('lost' | 'down')[]>()

  constructor(balance: bigint) {
    this.balance = balance
  }

  get openHolds(): number {
    return [...this.holds.values()].filter(isOpen).length
  }

  get held(): bigint {
    const ofCalls = [...this.holds.values()].filter(isOpen).map(({ amount }) => amount)
    return [...ofCalls, ...this.runs.values()].reduce((sum, amount) => sum + amount, 0n)
  }

  /** The only hold of a test with one call. */
  get only(): Hold {
    if (this.holds.size !== 1) throw new Error(`there are ${this.holds.size} holds`)
    return [...this.holds.values()][0]!
  }

  /** The answer of `findPrincipal`. Undefined: the last caller that wrote; null: the organization no longer exists. */
  principal: Principal | null | undefined
  /** The revision of the rules in force. */
  rules = 0
  #latest: Principal | undefined

  findPrincipal: Billing['findPrincipal'] = async () => {
    if (this.principal !== undefined) return this.principal && { ...this.principal, revision: this.rules }
    return this.#latest ? { ...this.#latest, isRun: false, revision: this.rules } : null
  }

  quoteHolds: Billing['quoteHolds'] = async (holds) =>
    holds.map(({ rateCard, ceiling }) => {
      const amount = computeWorstCase(ceiling, rateCard)
      return { amount, isCovered: this.balance - this.held >= amount }
    })

  placeHold: Billing['placeHold'] = ({ id, modelId, rateCard, ceiling, ttlSeconds, holder }, context) =>
    this.#write('placeHold', context, () => {
      this.#requireInForce(context)
      if (this.holds.has(id)) throw new Error(`the hold ${id} was placed twice`)
      const amount = computeWorstCase(ceiling, rateCard)
      const { runHoldId } = context
      if (runHoldId === undefined) this.#requireFunds(amount)
      else this.#deductFromRun(runHoldId, amount)
      const { organizationId } = context.caller
      this.modelIds.push(modelId)
      const checkpoint = toQuantities(0, 0)
      const terms = { amount, rateCard, organizationId, ttlSeconds, runHoldId, holder }
      this.holds.set(id, { ...terms, checkpoint, state: 'dispatched', charged: 0n, used: null })
    })

  placeRunHold: Billing['placeRunHold'] = ({ id, amount }, context) =>
    this.#write('placeRunHold', context, () => {
      this.#requireInForce(context)
      this.#requireFunds(amount)
      this.runs.set(id, amount)
    })

  dispatchHold: Billing['dispatchHold'] = (id, quantities, context) =>
    this.#write('dispatchHold', context, () => {
      this.#requireInForce(context)
      const hold = this.#find(id, context)
      if (!isOpen(hold)) throw new ServiceUnavailable('The hold')
      hold.checkpoint = quantities
    })

  checkpointHold: Billing['checkpointHold'] = (id, quantities, _ttlSeconds, context) =>
    this.#write('checkpointHold', context, () => {
      if (this.runs.has(id)) return
      if (this.#expired.has(id)) throw new KisError('not_found', 'The hold has ended.')
      const hold = this.#find(id, context)
      if (hold.state !== 'dispatched') throw new KisError('not_found', 'The hold has ended.')
      hold.checkpoint = quantities
    })

  /** Repeats itself, as the port says. */
  settleHold: Billing['settleHold'] = (id, quantities, source, context) =>
    this.#untilDecided('settleHold', context, () => {
      const hold = this.#find(id, context)
      if (isOpen(hold)) {
        hold.state = 'settled'
        hold.used = { quantities, source }
        this.#charge(hold, quantities)
      }
      return { charged: hold.charged, isOwn: hold.state === 'settled' }
    })

  endRunHold: Billing['endRunHold'] = (id, context) =>
    this.#untilDecided('endRunHold', context, () => {
      const left = this.runs.get(id) ?? 0n
      this.runs.delete(id)
      return left
    })

  voidHold: Billing['voidHold'] = (id, context) =>
    this.#untilDecided('voidHold', context, () => {
      const hold = this.#find(id, context)
      if (!isOpen(hold)) return hold.charged
      hold.state = 'voided'
      this.#returnToRun(hold)
      return 0n
    })

  endHoldsOf: Billing['endHoldsOf'] = async (holder) => {
    for (const hold of this.holds.values()) {
      if (hold.holder !== holder || !isOpen(hold)) continue
      hold.state = 'expired'
      this.#charge(hold, hold.checkpoint)
    }
  }

  /** What happens when the process of the runs dies: what they have left is released. */
  expireRuns(): void {
    for (const id of this.runs.keys()) this.#expired.add(id)
    this.runs.clear()
  }

  fail(method: Method, ...faults: ('lost' | 'down')[]): void {
    this.faults.set(method, faults)
  }

  #requireFunds(amount: bigint): void {
    if (this.balance - this.held < amount) throw new KisError('insufficient_quota', 'The wallet cannot cover the call.')
  }

  #deductFromRun(runHoldId: string, amount: bigint): void {
    const left = this.runs.get(runHoldId)
    if (left === undefined) throw new ServiceUnavailable('The hold')
    if (left < amount) throw new KisError('run_limit_exceeded', 'The run cannot cover the call.')
    this.runs.set(runHoldId, left - amount)
  }

  #charge(hold: Hold, quantities: Quantities): void {
    const price = computePrice(quantities, ratesReached(quantities, hold.rateCard))
    hold.charged = price < hold.amount ? price : hold.amount
    this.balance -= hold.charged
    this.#returnToRun(hold)
  }

  #returnToRun({ runHoldId, amount, charged }: Hold): void {
    const left = runHoldId === undefined ? undefined : this.runs.get(runHoldId)
    if (left !== undefined) this.runs.set(runHoldId!, left + amount - charged)
  }

  #find(id: string, { caller }: BillingContext): Hold {
    const hold = this.holds.get(id)
    if (!hold || hold.organizationId !== caller.organizationId) throw new KisError('not_found', `No hold ${id}.`)
    return hold
  }

  async #untilDecided<T>(method: Method, context: BillingContext, apply: () => T): Promise<T> {
    for (;;) {
      try {
        return await this.#write(method, context, apply)
      } catch (error) {
        if (!(error instanceof ServiceUnavailable) || context.signal.aborted) throw error
      }
    }
  }

  #requireInForce({ caller }: BillingContext): void {
    if (caller.revision < this.rules) throw new StalePrincipal()
  }

  async #write<T>(method: Method, { signal, caller }: BillingContext, apply: () => T): Promise<T> {
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
    this.#latest = caller
    this.writes.push(method)
    const fault = this.faults.get(method)?.shift()
    if (fault === 'down') throw new ServiceUnavailable('Billing')
    const result = apply()
    if (this.balance < this.held) throw new Error('the balance fell below what is held')
    if (fault === 'lost') throw new ServiceUnavailable('Billing')
    return result
  }
}

function isOpen({ state }: Hold): boolean {
  return state === 'dispatched'
}

function ratesReached(quantities: Quantities, card: RateCard): Rates {
  const input = quantities.inputTokens + quantities.cachedInputTokens + quantities.cacheWriteTokens
  return card.tiers.findLast(({ aboveInputTokens }) => input > aboveInputTokens) ?? card
}

/** Ceilings have all input in one unit. */
function computeWorstCase(ceiling: Quantities, card: RateCard): bigint {
  const cards = [card, ...card.tiers.filter(({ aboveInputTokens }) => ceiling.inputTokens > aboveInputTokens)]
  const inBuckets = (['inputTokens', 'cachedInputTokens', 'cacheWriteTokens'] as const).map((unit) => ({
    ...ceiling,
    inputTokens: 0,
    [unit]: ceiling.inputTokens,
  }))
  const costs = cards.flatMap((rates) => inBuckets.map((quantities) => computePrice(quantities, rates)))
  return costs.reduce((a, b) => (a > b ? a : b))
}

function computePrice(quantities: Quantities, rates: Rates): bigint {
  const units = ['inputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'outputTokens', 'audioMilliseconds', 'searchUnits'] as const
  return (units.reduce((sum, unit) => sum + BigInt(quantities[unit]) * rates[unit], 0n) + 999_999n) / 1_000_000n
}
