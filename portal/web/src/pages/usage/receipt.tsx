import { useText } from '../../i18n/text.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Digits } from '../../parts/digits.tsx'
import { FactList } from '../../parts/fact-list.tsx'
import { Money } from '../../parts/money.tsx'
import { DateTime } from '../../parts/time.tsx'
import { Code, UserText } from '../../parts/user-text.tsx'
import { Table, Td, Th } from '../../ui/table.tsx'
import type { UsageRecord } from './usage.ts'

/** How the charge of one call was computed. */
export function Receipt({ record }: { readonly record: UsageRecord }) {
  const text = useText()
  const { id, at, operation, model, apiKey, source, requestId, rateCardVersion, quantities, amount } = record
  return (
    <div className="flex flex-col gap-6">
      <FactList
        facts={[
          [text('usage.at'), <DateTime key="at" at={at} />],
          [text('usage.operation'), text(`usage.operation.${operation}`)],
          [text('usage.model'), model && <Code key="model">{model.id}</Code>],
          [text('usage.key'), apiKey && <UserText key="key">{apiKey.name}</UserText>],
          [
            text('usage.request'),
            <span key="request" className="flex items-center gap-1">
              <Code>{requestId}</Code>
              <CopyButton value={requestId} label={text('usage.copyRequest')} />
            </span>,
          ],
          [text('usage.record'), <Code key="id">{id}</Code>],
          [text('usage.rates'), <Code key="rates">{rateCardVersion}</Code>],
          [text('usage.source'), text(`usage.source.${source}`)],
        ]}
      />
      <Table label={text('usage.quantities')}>
        <caption className="sr-only">{text('usage.quantities')}</caption>
        <thead>
          <tr>
            <Th>{text('usage.unit')}</Th>
            <Th className="text-end">{text('usage.quantity')}</Th>
            <Th className="text-end">{text('usage.rate')}</Th>
          </tr>
        </thead>
        <tbody>
          {quantities.map(({ unit, quantity, rate }) => (
            <tr key={unit}>
              <Td>{text(`usage.unit.${unit}`)}</Td>
              <Td className="text-end">
                <Digits value={quantity} />
              </Td>
              <Td className="text-end">
                <Money amount={rate} />
              </Td>
            </tr>
          ))}
        </tbody>
      </Table>
      <p className="flex items-baseline justify-between border-t pt-4 font-semibold">
        <span>{text('usage.charged')}</span>
        <Money amount={amount} />
      </p>
    </div>
  )
}
