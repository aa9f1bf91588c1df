import { billingOperation, type OperationText } from '../../../schema/operations.ts'
import { KisError, ServiceUnavailable, StalePrincipal } from '../../common/errors.ts'
import { PRINCIPAL_FIELDS, principalFrom } from '../../common/identity/principal.ts'
import { type Link, request } from '../../common/link/link.ts'
import type { Clock } from '../../common/process/clock.ts'
import { formatUsd, parseUsd } from '../../common/usd.ts'
import type { Billing, BillingContext, Quantities, RateCard, Rates } from '../ports/billing.ts'

const PRINCIPAL_OF_KEY = billingOperation(`query PrincipalOfKey($organizationId: ID!, $apiKeyId: ID!) {
  principalOfKey(organizationId: $organizationId, apiKeyId: $apiKeyId) { ${PRINCIPAL_FIELDS} }
}`)
const QUOTE = billingOperation('query QuoteHolds($holds: [QuoteHoldInput!]!) { quoteHolds(holds: $holds) { amount isCovered } }')
const PLACE = billingOperation('mutation PlaceHold($input: PlaceHoldInput!) { placeHold(input: $input) { id } }')
const PLACE_RUN = billingOperation('mutation PlaceRunHold($input: PlaceRunHoldInput!) { placeRunHold(input: $input) { id } }')
const DISPATCH = billingOperation('mutation DispatchHold($input: HoldQuantitiesInput!) { dispatchHold(input: $input) { id } }')
const CHECKPOINT = billingOperation('mutation CheckpointHold($input: CheckpointHoldInput!) { checkpointHold(input: $input) { id } }')
const SETTLE = billingOperation('mutation SettleHold($input: SettleHoldInput!) { settleHold(input: $input) { charged state } }')
const VOID = billingOperation('mutation VoidHold($id: ID!) { voidHold(id: $id) { charged } }')
const END_HOLDS_OF = billingOperation('mutation EndHoldsOf($holder: ID!) { endHoldsOf(holder: $holder) }')
const END_RUN = billingOperation('mutation EndRunHold($id: ID!) { voidHold(id: $id) { freed } }')

/**
 * Opening a hold is a small write. If billing has answered nobody for this long, it is stopped or unreachable, and
 * callers who wait to begin are told so. A billing that is only busy still answers others.
 */
const SILENT_MS = 2_000
const RECHECK_MS = 100
const FIRST_DELAY_MS = 50
const LONGEST_DELAY_MS = 5_000

/**
 * Billing behind a link. Calls that end a hold are repeated until billing answers or the context's signal aborts; they
 * are idempotent by the hold's id.
 */
export function billingOver(link: Link, clock: Clock): Billing {
  /** When billing last answered any call, by `performance.now()`. */
  let heardAt = Number.NEGATIVE_INFINITY

  async function once<Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: BillingContext,
  ): Promise<Data> {
    try {
      const data = await request(link, { query, variables }, context)
      heardAt = performance.now()
      return data
    } catch (error) {
      if (isDecision(error)) heardAt = performance.now()
      throw error
    }
  }

  async function unlessSilent<Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: BillingContext,
  ): Promise<Data> {
    const stop = new AbortController()
    const onAbort = () => stop.abort(context.signal.reason)
    if (context.signal.aborted) onAbort()
    context.signal.addEventListener('abort', onAbort, { once: true })
    const sentAt = performance.now()
    let isSilent = false
    const check = () => {
      const leftMs = Math.max(sentAt, heardAt) + SILENT_MS - performance.now()
      // Checked twice: after a pause of this process, answers that have arrived are read after the first check.
      if (leftMs <= 0 && isSilent) return stop.abort(new ServiceUnavailable('Billing'))
      isSilent = leftMs <= 0
      timer = setTimeout(check, Math.max(leftMs, RECHECK_MS))
    }
    let timer = setTimeout(check, SILENT_MS)
    try {
      return await once(query, variables, { ...context, signal: stop.signal })
    } catch (error) {
      throw stop.signal.reason instanceof ServiceUnavailable ? stop.signal.reason : error
    } finally {
      clearTimeout(timer)
      context.signal.removeEventListener('abort', onAbort)
    }
  }

  async function untilDecided<Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: BillingContext,
  ): Promise<Data> {
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        return await once(query, variables, context)
      } catch (error) {
        if (isDecision(error)) throw error
        // The work is done and may have been charged, so the caller must not repeat it.
        await clock.sleep(delayMs * (0.5 + Math.random() / 2), context.signal).catch(() => {
          throw new ServiceUnavailable('Billing', { cause: error, shouldRetry: false, retryAfterMs: null })
        })
      }
    }
  }

  return {
    async findPrincipal(organizationId, apiKeyId, signal) {
      const { principalOfKey } = await request(
        link,
        { query: PRINCIPAL_OF_KEY, variables: { organizationId, apiKeyId } },
        { caller: { service: 'inference' }, requestId: apiKeyId, signal },
      )
      return principalOfKey && principalFrom(principalOfKey)
    },

    async quoteHolds(holds, context) {
      const inputs = holds.map(({ rateCard, ceiling }) => ({ rateCard: rateCardInput(rateCard), ceiling: quantitiesInput(ceiling) }))
      const { quoteHolds } = await once(QUOTE, { holds: inputs }, context)
      return quoteHolds.map(({ amount, isCovered }) => ({ amount: parseUsd(amount), isCovered }))
    },

    async placeHold({ id, operation, modelId, rateCard, ceiling, ttlSeconds, holder }, context) {
      const input = {
        id,
        operation: operation.toUpperCase() as Uppercase<typeof operation>,
        modelId,
        requestId: context.requestId,
        rateCard: rateCardInput(rateCard),
        ceiling: quantitiesInput(ceiling),
        ttlSeconds,
        runHoldId: context.runHoldId,
        holder,
      }
      await unlessSilent(PLACE, { input }, context)
    },

    async placeRunHold({ id, amount, ttlSeconds, holder }, context) {
      await unlessSilent(PLACE_RUN, { input: { id, amount: formatUsd(amount), requestId: context.requestId, ttlSeconds, holder } }, context)
    },

    async dispatchHold(id, quantities, context) {
      await unlessSilent(DISPATCH, toSettlement(id, quantities), context)
    },

    async checkpointHold(id, quantities, ttlSeconds, context) {
      try {
        await once(CHECKPOINT, { input: { id, quantities: quantitiesInput(quantities), ttlSeconds } }, context)
      } catch (error) {
        throw isEnded(error) ? new KisError('not_found', `The hold \`${id}\` has ended.`, { cause: error }) : error
      }
    },

    async settleHold(id, quantities, source, context) {
      const input = { id, quantities: quantitiesInput(quantities), source: source.toUpperCase() as Uppercase<typeof source> }
      const { settleHold } = await untilDecided(SETTLE, { input }, context)
      return { charged: parseUsd(settleHold.charged), isOwn: settleHold.state === 'SETTLED' }
    },

    async endRunHold(id, context) {
      const { voidHold } = await untilDecided(END_RUN, { id }, context)
      return parseUsd(voidHold.freed)
    },

    async voidHold(id, context) {
      const { voidHold } = await untilDecided(VOID, { id }, context)
      return parseUsd(voidHold.charged)
    },

    async endHoldsOf(holder, signal) {
      const context = { caller: { service: 'inference' }, requestId: holder, signal } as const
      await request(link, { query: END_HOLDS_OF, variables: { holder } }, context)
    },
  }
}

/** An ended hold has no wait before a retry; an outage of billing has one. */
function isEnded(error: unknown): boolean {
  return error instanceof KisError && !(error instanceof StalePrincipal) && error.code === 'service_unavailable' && error.retryAfterMs === 0
}

/** True if billing has decided: a repeat would get the same answer. */
function isDecision(error: unknown): boolean {
  if (error instanceof StalePrincipal) return true
  return error instanceof KisError && error.code !== 'service_unavailable' && error.code !== 'internal'
}

function toSettlement(id: string, quantities: Quantities) {
  return { input: { id, quantities: quantitiesInput(quantities) } }
}

function quantitiesInput({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, audioMilliseconds, searchUnits }: Quantities) {
  return { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, audioMilliseconds, searchUnits }
}

function rateCardInput({ version, tiers, ...rates }: RateCard) {
  return {
    version,
    ...ratesInput(rates),
    tiers: tiers.map(({ aboveInputTokens, ...tier }) => ({ aboveInputTokens, ...ratesInput(tier) })),
  }
}

function ratesInput({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, audioMilliseconds, searchUnits }: Rates) {
  return {
    inputTokens: formatUsd(inputTokens),
    cachedInputTokens: formatUsd(cachedInputTokens),
    cacheWriteTokens: formatUsd(cacheWriteTokens),
    outputTokens: formatUsd(outputTokens),
    audioMilliseconds: formatUsd(audioMilliseconds),
    searchUnits: formatUsd(searchUnits),
  }
}
