import { ChartColumn } from 'lucide-react'
import { Suspense, useMemo } from 'react'
import { lazyPart } from '../../data/lazy-part.ts'
import { useQueryResult } from '../../data/query-result.ts'
import { directionOf } from '../../i18n/preferences.ts'
import { useFormats, useText } from '../../i18n/text.tsx'
import { usePreferences } from '../../i18n/use-preferences.ts'
import { type Column, RowsTable } from '../../parts/data-table.tsx'
import { Digits } from '../../parts/digits.tsx'
import { Money, useMoney, useMoneyAxis } from '../../parts/money.tsx'
import { EmptyState, WhenReady } from '../../parts/states.tsx'
import { UserText } from '../../parts/user-text.tsx'
import { Select } from '../../ui/input.tsx'
import { Card, Skeleton } from '../../ui/surface.tsx'
import { type Filters, GROUPINGS, MEASURES, RANGES, STEPS, timesOf } from './filters.ts'
import { measured, REST, type Series, toSeries } from './series.ts'
import { CHART, type Summary } from './usage.ts'

const Chart = lazyPart(() => import('./chart.tsx'), 'Chart')

interface OverviewProps {
  readonly filters: Filters
  readonly onChange: (next: Filters) => void
}

/** What was used in a range: its sums, a chart over time, and the shares of models, keys or kinds of calls. */
export function Overview({ filters, onChange }: OverviewProps) {
  const text = useText()
  const { range = 'month', by = 'MODEL', measure = 'amount', model, key } = filters
  const { since, until, steps } = useMemo(() => timesOf(range), [range])
  const result = useQueryResult(CHART, {
    groupBy: [range === 'day' ? 'HOUR' : 'DAY', by],
    filter: { since, until, modelId: model ?? null, apiKeyId: key ?? null },
  })
  return (
    <>
      <search className="mb-4 grid gap-2 sm:grid-cols-3">
        <Select
          aria-label={text('usage.range')}
          value={range}
          onChange={(range) => onChange({ range })}
          options={RANGES.map((value) => ({ value, label: text(`usage.range.${value}`, { count: STEPS[value] }) }))}
        />
        <Select
          aria-label={text('usage.by')}
          value={by}
          onChange={(by) => onChange({ by })}
          options={GROUPINGS.map((value) => ({ value, label: text(`usage.by.${value}`) }))}
        />
        <Select
          aria-label={text('usage.measure')}
          value={measure}
          onChange={(measure) => onChange({ measure })}
          options={MEASURES.map((value) => ({ value, label: text(`usage.measure.${value}`) }))}
        />
      </search>
      <WhenReady result={result}>
        {({ usageSummary }) =>
          !usageSummary || usageSummary.total.calls === 0 ? (
            <EmptyState icon={ChartColumn} title={text('usage.none')}>
              {text('usage.noneHelp')}
            </EmptyState>
          ) : (
            <Shown summary={usageSummary} steps={steps} {...{ by, measure, range }} />
          )
        }
      </WhenReady>
    </>
  )
}

interface ShownProps extends Required<Pick<Filters, 'by' | 'measure' | 'range'>> {
  readonly summary: Summary
  readonly steps: readonly string[]
}

function Shown({ summary, steps, by, measure, range }: ShownProps) {
  const text = useText()
  const { number, percent } = useFormats()
  const money = useMoney()
  const moneyAxis = useMoneyAxis()
  const preferences = usePreferences()
  const { series, points } = useMemo(() => toSeries(summary.groups, steps, by, measure), [summary, steps, by, measure])
  const format = (value: number) => (measure === 'amount' ? money(value.toFixed(9), 'exact') : number(value))
  const formatTick = (value: number, step: number) => {
    if (measure !== 'amount') return number(value, { notation: 'compact' })
    // Cents, unless the amounts are whole or smaller.
    return moneyAxis(value, step >= 1 ? 0 : Math.max(2, -Math.floor(Math.log10(step))))
  }
  const nameOf = ({ id, name }: Series) => {
    if (id === REST) return text('usage.rest')
    return by === 'OPERATION' ? text(`usage.operation.${id as 'EMBEDDING'}`) : (name ?? id)
  }
  const all = measured(summary.total, measure)
  const columns: readonly Column<Series>[] = [
    {
      id: 'name',
      header: text(`usage.by.${by}`),
      cell: (each) => (
        <span className="flex items-center gap-2">
          <span aria-hidden className="size-2.5 shrink-0 rounded-sm" style={{ background: each.color }} />
          <UserText className="max-w-52 sm:max-w-96">{nameOf(each)}</UserText>
        </span>
      ),
    },
    { id: 'value', header: text(`usage.measure.${measure}`), cell: ({ total }) => format(total), isNumber: true },
    { id: 'share', header: text('usage.share'), cell: ({ total }) => percent(all === 0 ? 0 : total / all), isNumber: true },
  ]
  return (
    <div className="flex flex-col gap-5">
      <Sums totals={summary.total} />
      <Card>
        <Suspense fallback={<Skeleton className="h-72" />}>
          <Chart
            {...{ series, points, nameOf, format, formatTick }}
            isByHour={range === 'day'}
            isRightToLeft={directionOf(preferences) === 'rtl'}
          />
        </Suspense>
        {range !== 'day' && <p className="mt-2 text-xs text-muted">{text('usage.utc')}</p>}
      </Card>
      <RowsTable label={text(`usage.by.${by}`)} columns={columns} rows={series} rowId={({ id }) => id} />
    </div>
  )
}

function Sums({ totals }: { readonly totals: Summary['total'] }) {
  const text = useText()
  const sums = [
    ['amount', <Money key="amount" amount={totals.amount} rounding="up" />],
    ['calls', <Digits key="calls" value={totals.calls} />],
    ['inputTokens', <Digits key="input" value={measured(totals, 'inputTokens')} notation="compact" />],
    ['outputTokens', <Digits key="output" value={totals.outputTokens} notation="compact" />],
  ] as const
  return (
    <dl className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      {sums.map(([measure, value]) => (
        <Card as="div" key={measure}>
          <dt className="text-sm text-muted">{text(`usage.measure.${measure}`)}</dt>
          <dd className="mt-1 text-xl font-semibold">{value}</dd>
        </Card>
      ))}
    </dl>
  )
}
