import { Link } from '@tanstack/react-router'
import { Layers } from 'lucide-react'
import { useQueryResult } from '../../data/query-result.ts'
import { useText } from '../../i18n/text.tsx'
import { type Column, RowsTable } from '../../parts/data-table.tsx'
import { EmptyState, WhenReady } from '../../parts/states.tsx'
import { Code } from '../../parts/user-text.tsx'
import { LimitValue } from './limit-value.tsx'
import { LIMITS } from './limits.ts'
import { PLANS, type Plan } from './operator.ts'

/** What each plan allows. */
export function Plans() {
  const text = useText()
  const result = useQueryResult(PLANS, {})
  const columns: readonly Column<Plan>[] = [
    {
      id: 'code',
      header: text('operator.plan'),
      cell: ({ code }) => (
        <Link to="/operator" search={{ plan: code }} className="font-medium underline-offset-4 hover:underline">
          <Code className="max-w-40 font-sans">{code}</Code>
        </Link>
      ),
    },
    ...LIMITS.map((limit) => ({
      id: limit,
      header: text(`operator.limit.${limit}`),
      cell: (plan: Plan) => <LimitValue limit={limit} value={plan[limit]} />,
      isNumber: true,
      className: 'whitespace-nowrap',
    })),
  ]
  return (
    <>
      <p className="mb-4 text-sm text-muted">{text('operator.plansHelp')}</p>
      <WhenReady result={result}>
        {({ plans }) =>
          plans.length === 0 ? (
            <EmptyState icon={Layers} title={text('operator.plansNone')} />
          ) : (
            <RowsTable label={text('operator.tab.plans')} columns={columns} rows={plans} rowId={({ code }) => code} />
          )
        }
      </WhenReady>
    </>
  )
}
