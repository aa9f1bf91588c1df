import { useFormats } from '../i18n/text.tsx'

/** A number in the reader's digits. */
export function Digits({ value, ...options }: { readonly value: number | bigint | null | undefined } & Intl.NumberFormatOptions) {
  const { number } = useFormats()
  if (value === null || value === undefined) return <span aria-hidden>—</span>
  return <span className="tabular-nums">{number(value, options)}</span>
}
