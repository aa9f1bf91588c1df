import { useText } from '../../i18n/text.tsx'
import { Money } from '../../parts/money.tsx'
import type { Model } from './models.ts'

type Price = Model['price']

/** The prices of a model in a line or two, each with its unit. */
export function PriceSummary({ price }: { readonly price: Price }) {
  const text = useText()
  if (!price) return <span className="text-muted">{text('models.priceUnknown')}</span>
  const { input, output, audioMinute, searchThousand } = price
  const lines = [
    { amount: input, unit: text('models.price.input') },
    { amount: output, unit: text('models.price.output') },
    { amount: audioMinute, unit: text('models.price.audioMinute') },
    { amount: searchThousand, unit: text('models.price.searchThousand') },
  ]
  return (
    <span className="inline-flex flex-col text-start">
      {lines
        .filter(({ amount }) => amount !== null)
        .map(({ amount, unit }) => (
          <span key={unit} className="md:whitespace-nowrap">
            <Money amount={amount} /> <span className="text-xs text-muted">{unit}</span>
          </span>
        ))}
    </span>
  )
}
