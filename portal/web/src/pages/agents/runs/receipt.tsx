import { useFormats, useText } from '../../../i18n/text.tsx'
import { type Column, RowsTable } from '../../../parts/data-table.tsx'
import { Digits } from '../../../parts/digits.tsx'
import { Money, useMoney } from '../../../parts/money.tsx'
import { Code, UserText } from '../../../parts/user-text.tsx'
import { useCollectionNames } from '../base/collection-names.ts'
import type { Run } from './runs.ts'

type Charge = Run['steps'][number] & { readonly id: number }

/** Writes the receipt in one line: the number of charges, the tokens, and the sum. */
export function useReceiptLine(): (run: Run) => string {
  const text = useText()
  const { number } = useFormats()
  const money = useMoney()
  return ({ steps, usage, cost }) =>
    text('agents.receiptLine', {
      count: steps.length,
      steps: number(steps.length),
      tokens: number(usage.totalTokens),
      cost: cost === null ? '—' : money(cost, 'up'),
    })
}

/** Each charge of a run, and their sum. */
export function Receipt({ run }: { readonly run: Run }) {
  const text = useText()
  const columns = useColumns()
  return (
    <div className="flex flex-col gap-2">
      <RowsTable
        label={text('agents.receipt')}
        columns={columns}
        rows={run.steps.map((step, id) => ({ ...step, id }))}
        rowId={({ id }) => String(id)}
      />
      <p className="flex items-center justify-end gap-3 pe-4 text-sm">
        <span className="text-muted">{text('agents.total')}</span>
        <strong className="font-semibold">
          <Money amount={run.cost} />
        </strong>
      </p>
    </div>
  )
}

function useColumns(): readonly Column<Charge>[] {
  const text = useText()
  const { number } = useFormats()
  const names = useCollectionNames()
  return [
    {
      id: 'what',
      header: text('agents.charge'),
      cell: ({ kind, model, collection, query, hitCount }) => (
        <>
          <span className="font-medium">{text(`agents.charge.${kind}`)}</span>
          <div className="text-xs text-muted">
            {model && <Code className="max-w-40 sm:max-w-72">{model.id}</Code>}
            {names.has(collection?.id ?? '') && (
              <div>
                <UserText className="max-w-40 sm:max-w-72">{names.get(collection!.id)!}</UserText>
              </div>
            )}
            {query !== null && <UserText className="max-w-40 sm:max-w-72">{`“${query}”`}</UserText>}
            {hitCount !== null && <div>{text('agents.hits', { count: hitCount, shown: number(hitCount) })}</div>}
          </div>
        </>
      ),
    },
    {
      id: 'input',
      header: text('agents.tokensIn'),
      cell: ({ usage }) => <Digits value={usage?.promptTokens} />,
      isNumber: true,
      shown: 'wide',
    },
    {
      id: 'output',
      header: text('agents.tokensOut'),
      cell: ({ usage }) => <Digits value={usage?.completionTokens} />,
      isNumber: true,
      shown: 'wide',
    },
    { id: 'cost', header: text('agents.cost'), cell: ({ cost }) => <Money amount={cost} />, isNumber: true },
  ]
}
