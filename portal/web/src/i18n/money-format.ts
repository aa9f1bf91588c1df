/** Most decimal places: amounts are exact to one nano-USD. */
const MAX_PLACES = 9
/** Decimal places of an amount below one cent. */
const SMALL_PLACES = 4
/** Unicode controls around a left-to-right text. */
const [ISOLATE, END] = ['\u2066', '\u2069']
const CURRENCY = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const

/**
 * How to round an amount. `up` is for spent or held amounts, `down` for remaining or allowed ones, so that nobody reads
 * a larger budget than there is. `exact` writes each place that the amount has.
 */
export type Rounding = 'up' | 'down' | 'exact'

/**
 * Returns a function that writes amounts of US dollars for a locale. Amounts of a cent and more have two decimals,
 * smaller ones four. `formatToParts` accepts a decimal string unchanged, so no amount becomes a float.
 */
export function moneyFormat(locale: string): (amount: string, rounding: Rounding) => string {
  const exact = new Intl.NumberFormat(locale, { ...CURRENCY, maximumFractionDigits: MAX_PLACES })
  const rounded = (places: number) => ({
    up: withPlaces(locale, places, 'ceil'),
    down: withPlaces(locale, places, 'floor'),
  })
  const [usual, small] = [rounded(2), rounded(SMALL_PLACES)]
  return (amount, rounding) => {
    if (rounding === 'exact') return write(exact, amount)
    const isSmall = /^-?0?\.00/.test(amount) && /[1-9]/.test(amount)
    return write((isSmall ? small : usual)[rounding], amount)
  }
}

/** Returns a function that writes the numbers of one axis, which all have the same number of places. */
export function moneyAxisFormat(locale: string): (amount: number, places: number) => string {
  return (amount, places) => write(withPlaces(locale, places, 'halfExpand'), String(amount))
}

function withPlaces(locale: string, places: number, roundingMode: 'ceil' | 'floor' | 'halfExpand'): Intl.NumberFormat {
  return new Intl.NumberFormat(locale, { ...CURRENCY, minimumFractionDigits: places, maximumFractionDigits: places, roundingMode })
}

/** Writes an amount. `US$` is left to right, also in a right-to-left line. */
function write(format: Intl.NumberFormat, amount: string): string {
  return format
    .formatToParts(amount as Intl.StringNumericLiteral)
    .map(({ type, value }) => (type === 'currency' ? `${ISOLATE}${value}${END}` : value))
    .join('')
}
