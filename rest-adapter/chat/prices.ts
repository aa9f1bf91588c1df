const TOKEN_PRICES = 'input cachedInput cacheWrite output'
/** The fields of a model's price. */
export const PRICE = `price { ${TOKEN_PRICES} audioMinute searchThousand tiers { aboveInputTokens ${TOKEN_PRICES} } }`

type TokenPrices = Readonly<Record<'input' | 'cachedInput' | 'cacheWrite' | 'output', string | null>>

export type PriceData = TokenPrices & {
  readonly audioMinute: string | null
  readonly searchThousand: string | null
  readonly tiers: readonly (TokenPrices & { readonly aboveInputTokens: number })[]
}

function toTokenPrices({ input, cachedInput, cacheWrite, output }: TokenPrices) {
  return { input, cached_input: cachedInput, cache_write: cacheWrite, output }
}

export function toPrice(price: PriceData | null) {
  return (
    price && {
      ...toTokenPrices(price),
      audio_minute: price.audioMinute,
      search_thousand: price.searchThousand,
      tiers: price.tiers.map((tier) => ({ above_input_tokens: tier.aboveInputTokens, ...toTokenPrices(tier) })),
    }
  )
}
