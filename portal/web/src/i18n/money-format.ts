/** At most this many places: amounts are exact to one nano-USD. */
const MAX_PLACES = 9
/** Places of an amount below one cent. */
const SMALL_PLACES = 4
/** Controls of Unicode around a text from left to right. */
const [ISOLATE, END] = ['\u2066', '\u2069']
const CURRENCY = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const

/**
 * How to write an amount. `up` is for what is spent or held, `down` for what is left or allowed, so that nobody reads
 * that there is more to spend than there is. `exact` writes each place that the amount has.
 */
export type Rounding = 'up' | 'down' | 'exact'

/**
 * Gives a function that writes amounts of US dollars for a locale. Amounts of a cent and more have two decimals, smaller
 * ones four. `formatToParts` takes a decimal string as it is, so no amount becomes a float.
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

/** Gives a function that writes the numbers of one axis, which all have so many places. */
export function moneyAxisFormat(locale: string): (amount: number, places: number) => string {
  return (amount, places) => write(withPlaces(locale, places, 'halfExpand'), String(amount))
}

function withPlaces(locale: string, places: number, roundingMode: 'ceil' | 'floor' | 'halfExpand'): Intl.NumberFormat {
  return new Intl.NumberFormat(locale, { ...CURRENCY, minimumFractionDigits: places, maximumFractionDigits: places, roundingMode })
}

/** `US$` is written from left to right, also in a line from right to left. */
function write(format: Intl.NumberFormat, amount: string): string {
  return format
    .formatToParts(amount as Intl.StringNumericLiteral)
    .map(({ type, value }) => (type === 'currency' ? `${ISOLATE}${value}${END}` : value))
    .join('')
}
