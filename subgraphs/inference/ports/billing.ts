/** Money, as inference needs it: a GraphQL client of billing stands behind it. Amounts are nano-USD. */
export interface Billing {
  /** Whose work it is, as the key stands now, also when it is revoked; null: the organization is gone. For work that outlives its call. */
  principalOf(
    organizationId: string,
    apiKeyId: string,
    signal: AbortSignal,
  ): Promise<import('../../common/identity/principal.ts').Principal | null>
  /** What each hold would take, and whether the caller's wallet covers it now; nothing is held. @throws {KisError} */
  quoteHolds(holds: readonly Pick<HoldRequest, 'rateCard' | 'ceiling'>[], context: BillingContext): Promise<readonly HoldQuote[]>
  /** @throws {KisError} `insufficient_quota`: nothing is held. `service_unavailable`: whether it is held is unknown; void it or let it expire. */
  placeHold(hold: HoldRequest, context: BillingContext): Promise<void>
  /** Reserves the most that a run may spend; the holds of its calls are taken out of it. Ended by `endRunHold`. Errors as of `placeHold`. */
  placeRunHold(hold: RunHoldRequest, context: BillingContext): Promise<void>
  /** Await it before you call an engine. */
  dispatchHold(id: string, quantities: Quantities, context: BillingContext): Promise<void>
  /** Says that the call goes on: billing resolves the hold `ttlSeconds` from now at the earliest. @throws {KisError} `not_found`: the hold has ended. */
  checkpointHold(id: string, quantities: Quantities, ttlSeconds: number, context: BillingContext): Promise<void>
  /** Repeatable; repeats itself until billing answers or the context's signal aborts, and then says `service_unavailable`. */
  settleHold(id: string, quantities: Quantities, source: 'provider' | 'counted' | 'estimated', context: BillingContext): Promise<Settled>
  /** Frees what the run's calls have left and gives it. Repeatable, and repeats itself, as `settleHold`. @throws {KisError} `not_found`. */
  endRunHold(id: string, context: BillingContext): Promise<bigint>
  /** Frees the hold, or gives what was charged at its end before. Repeats itself as `settleHold` does. @throws {KisError} `not_found`: it was never placed. */
  voidHold(id: string, context: BillingContext): Promise<bigint>
  /** Ends what a process that is gone holds, as if its time were over. Repeatable. @throws {KisError} some of it may be held still. */
  endHoldsOf(holder: string, signal: AbortSignal): Promise<void>
}

/** How a hold has ended that was to be charged. */
export interface Settled {
  /** Nano-USD. */
  readonly charged: bigint
  /** False: the hold had ended before, and `charged` is what that cost. */
  readonly isOwn: boolean
}

export interface HoldRequest {
  readonly id: string
  readonly operation: 'chat_completion' | 'embedding' | 'transcription'
  readonly modelId: string
  readonly rateCard: RateCard
  readonly ceiling: Quantities
  readonly ttlSeconds: number
  /** The process that the work ends with; null: another may go on with it. */
  readonly holder: string | null
}

export interface RunHoldRequest extends Pick<HoldRequest, 'id' | 'ttlSeconds' | 'holder'> {
  /** Nano-USD. */
  readonly amount: bigint
}

export interface HoldQuote {
  readonly amount: bigint
  readonly isCovered: boolean
}

/** Disjoint buckets; whole numbers. A ceiling has all of its input in one: billing holds it at the dearest price. */
export interface Quantities {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Input that the engine wrote to its cache. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly audioMilliseconds: number
}

/** Nano-USD per million units. */
export type Rates = { readonly [unit in keyof Quantities]: bigint }

export interface RateCard extends Rates {
  /** Changes whenever a price does. */
  readonly version: string
  /** Rates of the whole call once its input is longer, by rising length. */
  readonly tiers: readonly RateTier[]
}

export interface RateTier extends Rates {
  readonly aboveInputTokens: number
}

export interface BillingContext {
  readonly caller: import('../../common/identity/principal.ts').Principal
  readonly requestId: string
  readonly signal: AbortSignal
  /** The hold of the run that the call is a step of. Absent: the wallet pays. */
  readonly runHoldId?: string
}
