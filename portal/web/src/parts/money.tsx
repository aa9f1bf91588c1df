import { useMemo } from 'react'
import { moneyAxisFormat, moneyFormat, type Rounding } from '../i18n/money-format.ts'
import { useFormats } from '../i18n/text.tsx'

interface MoneyProps {
  /** US dollars as a decimal string, as in the schema. Null: unknown or none. */
  readonly amount: string | null | undefined
  /** `up` for spent or held amounts, `down` for remaining or allowed ones. Tables and receipts are exact. */
  readonly rounding?: Rounding
}

/** Writes an amount of US dollars; its exact value is in the title. */
export function Money({ amount, rounding = 'exact' }: MoneyProps) {
  const format = useMoney()
  if (amount === null || amount === undefined) return <span aria-hidden>—</span>
  return (
    <span className="whitespace-nowrap tabular-nums" title={format(amount, 'exact')}>
      {format(amount, rounding)}
    </span>
  )
}

/** Writes an amount as a string. */
export function useMoney(): ReturnType<typeof moneyFormat> {
  const { locale } = useFormats()
  return useMemo(() => moneyFormat(locale), [locale])
}

/** Writes the amounts of an axis, all with the same number of places. */
export function useMoneyAxis(): ReturnType<typeof moneyAxisFormat> {
  const { locale } = useFormats()
  return useMemo(() => moneyAxisFormat(locale), [locale])
}
