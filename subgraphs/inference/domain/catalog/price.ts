import { z } from 'zod'
import { list, mapping, reading, usd, whole } from '../../../common/catalog/fields.ts'

/**
 * Nano-USD per million tokens. Null: does not apply. Without a price for cached or written input, the price of other
 * input applies.
 */
export interface TokenPrices {
  readonly input: bigint | null
  readonly cachedInput: bigint | null
  readonly cacheWrite: bigint | null
  readonly output: bigint | null
}

export interface Price extends TokenPrices {
  /** Nano-USD per minute; null: does not apply. */
  readonly audio: bigint | null
  /** Nano-USD per thousand search units, the unit of some reranker vendors. Null: does not apply. */
  readonly search: bigint | null
  /** Prices of the whole call once its input, cached or not, exceeds a length. Sorted by that length. */
  readonly tiers: readonly PriceTier[]
}

interface PriceTier extends TokenPrices {
  readonly aboveInputTokens: number
}

/**
 * Most tokens of one choice. Times 128 choices, the most of one request, the product still fits GraphQL's 32-bit Int.
 */
export const MAX_TOKENS = 10_000_000
/** Vendors have one or two tiers. Every open hold stores them. */
const MAX_TIERS = 8
const TOKEN_PRICES = ['input', 'cached_input', 'cache_write', 'output'] as const

const TOKENS = { input: usd(), cached_input: usd(), cache_write: usd(), output: usd() }

/** A tier must name every price that the model has without a tier. An inherited price would be a guess. */
export const PRICE = mapping({
  ...TOKENS,
  audio: usd(),
  search: usd(),
  tiers: list(mapping({ above_input_tokens: z.unknown().optional(), ...TOKENS })).superRefine((tiers, context) => {
    if (tiers.length > MAX_TIERS) context.addIssue(`has more than ${MAX_TIERS} tiers`)
    let least = 1
    for (const [index, { above_input_tokens: tokens }] of tiers.entries()) {
      const problem = whole(least, MAX_TOKENS).safeParse(tokens).error?.issues[0]?.message
      const message = (tokens ?? null) === null ? 'is missing' : problem
      if (message !== undefined) context.addIssue({ code: 'custom', path: [index, 'above_input_tokens'], message })
      else least = Number(tokens) + 1
    }
  }),
}).superRefine(({ tiers, ...prices }, context) => {
  const named = TOKEN_PRICES.filter((unit) => (prices[unit] ?? null) !== null)
  for (const [index, tier] of tiers.entries())
    for (const unit of named)
      if ((tier[unit] ?? null) === null) context.addIssue({ code: 'custom', path: ['tiers', index, unit], message: 'is missing' })
}, reading('tiers'))

type TokenFields = Readonly<Record<(typeof TOKEN_PRICES)[number], bigint | null>>

export function toPrice({ audio, search, tiers, ...prices }: z.output<typeof PRICE>): Price {
  return {
    ...toTokenPrices(prices),
    audio,
    search,
    tiers: tiers.map((tier) => ({ aboveInputTokens: Number(tier.above_input_tokens), ...toTokenPrices(tier) })),
  }
}

function toTokenPrices({ input, cached_input, cache_write, output }: TokenFields): TokenPrices {
  return { input, cachedInput: cached_input ?? input, cacheWrite: cache_write ?? input, output }
}
