import { useMemo } from 'react'
import { useFormats } from '../i18n/text.tsx'

/** At most this many places: amounts are exact to one nano-USD. */
const MAX_PLACES = 9

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
    <span className="tabular-nums" title={format(amount, true)}>
      {format(amount, isExact)}
    </span>
  )
}

/** Writes an amount as a string. Amounts never become floating-point numbers. */
export function useMoney(): (amount: string, isExact?: boolean) => string {
  const { locale } = useFormats()
  return useMemo(() => {
    const currency = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const
    const short = new Intl.NumberFormat(locale, currency)
    const small = new Intl.NumberFormat(locale, { ...currency, maximumSignificantDigits: 2 })
    const exact = new Intl.NumberFormat(locale, { ...currency, maximumFractionDigits: MAX_PLACES })
    return (amount, isExact) => {
      const isSmall = /^-?0?\.00/.test(amount) && /[1-9]/.test(amount)
      // `format` takes a decimal string as it is.
      return (isExact ? exact : isSmall ? small : short).format(amount as Intl.StringNumericLiteral)
    }
  }, [locale])
}
