import { useFormats, useText } from '../../i18n/text.tsx'
import { isBytes, type Limit } from './limits.ts'

/** A limit in words: a size, a count, or that there is none. */
export function LimitValue({ limit, value }: { readonly limit: Limit; readonly value: number | null }) {
  const text = useText()
  const { bytes, number } = useFormats()
  if (value === null) return <span className="text-muted">{text('operator.unlimited')}</span>
  return <span className="tabular-nums">{isBytes(limit) ? bytes(value) : number(value)}</span>
}
