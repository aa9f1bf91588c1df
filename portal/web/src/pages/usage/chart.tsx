import { useMemo } from 'react'
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'
import { useFormats } from '../../i18n/text.tsx'
import type { Point, Series } from './series.ts'

interface ChartProps {
  readonly series: readonly Series[]
  readonly points: readonly Point[]
  readonly isByHour: boolean
  readonly nameOf: (series: Series) => string
  readonly format: (value: number, isShort?: boolean) => string
  readonly isRightToLeft: boolean
}

const TICK = { fill: 'var(--ink-muted)', fontSize: 12 }

/** Bars by hour or day; the table below the chart says the same to those who cannot see it. */
export function Chart({ series, points, isByHour, nameOf, format, isRightToLeft }: ChartProps) {
  const { locale } = useFormats()
  const time = useMemo(() => {
    const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', timeZone: 'UTC' })
    const hour = new Intl.DateTimeFormat(locale, { hour: 'numeric' })
    return (at: string) => (isByHour ? hour : day).format(new Date(at))
  }, [locale, isByHour])
  return (
    <div aria-hidden dir="ltr" className="relative h-72">
      {/* Out of the flow, so that the chart's width never keeps the page from becoming narrower. */}
      <div className="absolute inset-0 overflow-hidden">
        <ResponsiveContainer width="100%" height="100%">
          <BarChart data={[...points]} margin={{ top: 8, right: 4, bottom: 0, left: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--line)" />
            <XAxis
              dataKey="at"
              tickFormatter={time}
              tick={TICK}
              tickLine={false}
              axisLine={{ stroke: 'var(--line)' }}
              minTickGap={24}
              reversed={isRightToLeft}
            />
            <YAxis
              tickFormatter={(value: number) => format(value, true)}
              tick={TICK}
              tickLine={false}
              axisLine={false}
              width={64}
              orientation={isRightToLeft ? 'right' : 'left'}
            />
            <Tooltip
              isAnimationActive={false}
              cursor={{ fill: 'var(--hover)' }}
              content={({ active, payload, label }) =>
                active &&
                payload.length > 0 && (
                  <div dir={isRightToLeft ? 'rtl' : 'ltr'} className="rounded-lg border bg-raised p-3 text-sm shadow-raised">
                    <p className="mb-1.5 font-medium">{time(String(label))}</p>
                    {series.map((each) => (
                      <p key={each.id} className="flex items-center gap-2">
                        <span className="size-2.5 rounded-sm" style={{ background: each.color }} />
                        <bdi className="grow">{nameOf(each)}</bdi>
                        <span className="ps-4 tabular-nums">
                          {format((payload[0]?.payload as Point | undefined)?.values[each.id] ?? 0)}
                        </span>
                      </p>
                    ))}
                  </div>
                )
              }
            />
            {series.map(({ id, color }) => (
              <Bar
                key={id}
                dataKey={({ values }: Point) => values[id] ?? 0}
                stackId="all"
                fill={color}
                isAnimationActive={false}
                maxBarSize={28}
              />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
    </div>
  )
}
