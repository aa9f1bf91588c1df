import type { ReactNode } from 'react'
import { useText } from '../../../i18n/text.tsx'
import { Money } from '../../../parts/money.tsx'

/** The usage and cost of a call, in one line. */
export function Spent({ cost, children }: { readonly cost: string | null | undefined; readonly children?: ReactNode }) {
  const text = useText()
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-muted">
      {children}
      <span>
        {text('models.try.cost')} <Money amount={cost} />
      </span>
    </p>
  )
}
