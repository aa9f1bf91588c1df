import { useCallback, useMemo } from 'react'
import { useFormats } from '../i18n/text.tsx'

/** At most this many places: amounts are exact to one nano-USD. */
const MAX_PLACES = 9
/** Controls of Unicode around a text from left to right. */
const [ISOLATE, END] = ['\u2066', '\u2069']

interface MoneyProps {
  /** US dollars as a decimal string, as the schema has them. Null: unknown or none. */
  readonly amount: string | null | undefined
  /** Shows each place that the amount has. Otherwise amounts of a cent and more have two. */
  readonly isExact?: boolean
}

/** Writes an amount of US dollars; its exact value is in the title. */
export function Money({ amount, isExact }: MoneyProps) {
  const format = useMoney()
  if (amount === null || amount === undefined) return <span aria-hidden>—</span>
  return (
    <span className="whitespace-nowrap tabular-nums" title={format(amount, true)}>
      {format(amount, isExact)}
    </span>
  )
}

const CURRENCY = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const

/** `US$` is written from left to right, also in a line from right to left. */
function write(format: Intl.NumberFormat, amount: string): string {
  return format
    .formatToParts(amount as Intl.StringNumericLiteral)
    .map(({ type, value }) => (type === 'currency' ? `${ISOLATE}${value}${END}` : value))
    .join('')
}

/** Writes amounts that stand in one column, all with so many places. */
export function useMoneyColumn(): (amount: number, places: number) => string {
  const { locale } = useFormats()
  return useCallback(
    (amount, places) =>
      write(new Intl.NumberFormat(locale, { ...CURRENCY, minimumFractionDigits: places, maximumFractionDigits: places }), String(amount)),
    [locale],
  )
}

/** Writes an amount as a string. `formatToParts` takes a decimal string as it is, so no amount becomes a float. */
export function useMoney(): (amount: string, isExact?: boolean) => string {
  const { locale } = useFormats()
  return useMemo(() => {
    const short = new Intl.NumberFormat(locale, CURRENCY)
    const small = new Intl.NumberFormat(locale, { ...CURRENCY, maximumSignificantDigits: 2 })
    const exact = new Intl.NumberFormat(locale, { ...CURRENCY, maximumFractionDigits: MAX_PLACES })
    return (amount, isExact) => {
      const isSmall = /^-?0?\.00/.test(amount) && /[1-9]/.test(amount)
      return write(isExact ? exact : isSmall ? small : short, amount)
    }
  }, [locale])
}
