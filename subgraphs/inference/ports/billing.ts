/** Money, as inference needs it. A GraphQL client of billing implements it. Amounts are nano-USD. */
export interface Billing {
  /**
   * Returns the current principal of the key for which work is done, even if the key is revoked. Null: the organization
   * no longer exists. For work that outlives its call.
   */
  findPrincipal(
    organizationId: string,
    apiKeyId: string,
    signal: AbortSignal,
  ): Promise<import('../../common/identity/principal.ts').Principal | null>
  /**
   * Returns what each hold would reserve, and whether the caller's wallet covers it now. Reserves nothing.
   * @throws {KisError} the terms of a hold are wrong
   */
  quoteHolds(holds: readonly Pick<HoldRequest, 'rateCard' | 'ceiling'>[], context: BillingContext): Promise<readonly HoldQuote[]>
  /**
   * Reserves the most that a call can cost, and authorizes the call to reach an engine.
   * @throws {KisError} `insufficient_quota`: the wallet has too little, and nothing is reserved
   * @throws {KisError} `service_unavailable`: the outcome is unknown; void the hold or let it expire
   */
  placeHold(hold: HoldRequest, context: BillingContext): Promise<void>
  /**
   * Reserves the most that a run may spend. The holds of the run's calls are taken from this amount. End the hold with
   * `endRunHold`.
   * @throws as `placeHold`
   */
  placeRunHold(hold: RunHoldRequest, context: BillingContext): Promise<void>
  /**
   * Authorizes the call of an open hold to reach an engine now, as `placeHold` does, and reports the call's usage so
   * far.
   * @throws {KisError} the call may not reach an engine
   */
  dispatchHold(id: string, quantities: Quantities, context: BillingContext): Promise<void>
  /**
   * Reports that the call continues: its hold does not expire before `ttlSeconds` from now.
   * @throws {KisError} `not_found`: the hold has ended
   */
  checkpointHold(id: string, quantities: Quantities, ttlSeconds: number, context: BillingContext): Promise<void>
  /**
   * Charges what was used. Idempotent. Retries until billing responds.
   * @throws {KisError} `service_unavailable`: the context's signal aborted first
   */
  settleHold(id: string, quantities: Quantities, source: 'provider' | 'counted' | 'estimated', context: BillingContext): Promise<Settled>
  /**
   * Releases what the run's calls did not use, and returns that amount in nano-USD. Idempotent. Retries like
   * `settleHold`.
   * @throws {KisError} `not_found`: the hold was never placed
   */
  endRunHold(id: string, context: BillingContext): Promise<bigint>
  /**
   * Releases the hold and returns 0. If the hold had already ended, returns what was charged, in nano-USD. Retries like
   * `settleHold`.
   * @throws {KisError} `not_found`: the hold was never placed
   */
  voidHold(id: string, context: BillingContext): Promise<bigint>
  /**
   * Ends the holds of a dead process as if they had expired. Idempotent.
   * @throws {KisError} the request failed, and some holds may still be open
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

/** The terms of the hold for one call. */
export interface HoldRequest {
  readonly id: string
  readonly operation: 'chat_completion' | 'embedding' | 'transcription' | 'rerank'
  readonly modelId: string
  readonly rateCard: RateCard
  readonly ceiling: Quantities
  readonly ttlSeconds: number
  /**
   * The process that does the work. The hold ends if that process dies. Null: another process may continue the work.
   */
  readonly holder: string | null
}

interface RunHoldRequest extends Pick<HoldRequest, 'id' | 'ttlSeconds' | 'holder'> {
  /** Nano-USD. */
  readonly amount: bigint
}

/** What a hold would reserve. */
export interface HoldQuote {
  readonly amount: bigint
  readonly isCovered: boolean
}

/**
 * Whole numbers of units that do not overlap. A ceiling has all its input in one of the input units, which billing
 * prices at the highest input rate.
 */
export interface Quantities {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Input that the engine wrote to its cache. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly audioMilliseconds: number
  /** The unit of some reranker vendors: one query with up to 100 documents. */
  readonly searchUnits: number
}

/** Nano-USD per million units. */
export type Rates = { readonly [unit in keyof Quantities]: bigint }

/** The prices of one model. */
export interface RateCard extends Rates {
  /** Changes whenever a price changes. */
  readonly version: string
  /** Rates of the whole call once its input exceeds a length, sorted by that length. */
  readonly tiers: readonly RateTier[]
}

interface RateTier extends Rates {
  readonly aboveInputTokens: number
}

/** The caller of a request to billing, the request's id, and the signal that ends it. */
export interface BillingContext {
  readonly caller: import('../../common/identity/principal.ts').Principal
  readonly requestId: string
  readonly signal: AbortSignal
  /** The hold of the run that the call is a step of. Absent: the call's hold is taken from the wallet. */
  readonly runHoldId?: string
}
