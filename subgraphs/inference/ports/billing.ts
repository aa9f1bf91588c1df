/** Money, as inference needs it. A GraphQL client of billing implements it. Amounts are nano-USD. */
export interface Billing {
  /**
   * Gives the current principal of the key for which the work is done, even if the key is revoked; null: the
   * organization no longer exists. For work that outlives its call.
   */
  findPrincipal(
    organizationId: string,
    apiKeyId: string,
    signal: AbortSignal,
  ): Promise<import('../../common/identity/principal.ts').Principal | null>
  /**
   * Gives what each hold would take, and whether the caller's wallet covers it now. Nothing is reserved.
   * @throws {KisError} the terms of a hold are wrong
   */
  quoteHolds(holds: readonly Pick<HoldRequest, 'rateCard' | 'ceiling'>[], context: BillingContext): Promise<readonly HoldQuote[]>
  /**
   * Reserves the most that a call can cost, and lets the call reach an engine.
   * @throws {KisError} `insufficient_quota`: the wallet has too little, and nothing is reserved
   * @throws {KisError} `service_unavailable`: the outcome is unknown; void the hold or let it expire
   */
  placeHold(hold: HoldRequest, context: BillingContext): Promise<void>
  /**
   * Reserves the most that a run may spend. The holds of its calls are taken from it. End it with `endRunHold`.
   * @throws as `placeHold`
   */
  placeRunHold(hold: RunHoldRequest, context: BillingContext): Promise<void>
  /**
   * Says whether the call of an open hold may reach an engine now, as `placeHold` did, and reports its usage so far.
   * @throws {KisError} it may not
   */
  dispatchHold(id: string, quantities: Quantities, context: BillingContext): Promise<void>
  /**
   * Reports that the call goes on: the hold does not expire before `ttlSeconds` from now.
   * @throws {KisError} `not_found`: the hold has ended
   */
  checkpointHold(id: string, quantities: Quantities, ttlSeconds: number, context: BillingContext): Promise<void>
  /**
   * Charges what was used. Idempotent. Repeats itself until billing answers.
   * @throws {KisError} `service_unavailable`: the context's signal aborted first
   */
  settleHold(id: string, quantities: Quantities, source: 'provider' | 'counted' | 'estimated', context: BillingContext): Promise<Settled>
  /**
   * Releases what the run's calls have left, and gives it in nano-USD. Idempotent, and repeats itself like
   * `settleHold`.
   * @throws {KisError} `not_found`: the hold was never placed
   */
  endRunHold(id: string, context: BillingContext): Promise<bigint>
  /**
   * Releases the hold and gives 0, or gives what was charged if it had ended before. Repeats itself like `settleHold`.
   * @throws {KisError} `not_found`: the hold was never placed
   */
  voidHold(id: string, context: BillingContext): Promise<bigint>
  /**
   * Ends the holds of a dead process as if they had expired. Idempotent.
   * @throws {KisError} it failed, and some holds may still be open
   */
  endHoldsOf(holder: string, signal: AbortSignal): Promise<void>
}

/** The outcome of settling a hold. */
interface Settled {
  /** Nano-USD. */
  readonly charged: bigint
  /** False: the hold had ended before, and `charged` is the earlier charge. */
  readonly isOwn: boolean
}

export interface HoldRequest {
  readonly id: string
  readonly operation: 'chat_completion' | 'embedding' | 'transcription' | 'rerank'
  readonly modelId: string
  readonly rateCard: RateCard
  readonly ceiling: Quantities
  readonly ttlSeconds: number
  /** The process that does the work, which ends if the process dies. Null: another process may continue. */
  readonly holder: string | null
}

interface RunHoldRequest extends Pick<HoldRequest, 'id' | 'ttlSeconds' | 'holder'> {
  /** Nano-USD. */
  readonly amount: bigint
}

export interface HoldQuote {
  readonly amount: bigint
  readonly isCovered: boolean
}

/**
 * Whole numbers that do not overlap. A ceiling has all input in one of them, which billing prices at the highest input
 * rate.
 */
export interface Quantities {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Input that the engine wrote to its cache. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly audioMilliseconds: number
  /** Units in which some vendors of rerankers count: a query with up to 100 documents. */
  readonly searchUnits: number
}

/** Nano-USD per million units. */
export type Rates = { readonly [unit in keyof Quantities]: bigint }

export interface RateCard extends Rates {
  /** Changes whenever a price does. */
  readonly version: string
  /** Rates of the whole call once its input exceeds a length, in order of that length. */
  readonly tiers: readonly RateTier[]
}

interface RateTier extends Rates {
  readonly aboveInputTokens: number
}

export interface BillingContext {
  readonly caller: import('../../common/identity/principal.ts').Principal
  readonly requestId: string
  readonly signal: AbortSignal
  /** The hold of the run that the call is a step of. Absent: the hold is taken from the wallet. */
  readonly runHoldId?: string
}
