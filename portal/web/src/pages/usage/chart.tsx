import { useMemo } from 'react'
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts'
import { useFormats } from '../../i18n/text.tsx'
import { type Point, type Series, ticksOf } from './series.ts'

interface ChartProps {
  readonly series: readonly Series[]
  readonly points: readonly Point[]
  readonly isByHour: boolean
  readonly nameOf: (series: Series) => string
  readonly format: (value: number) => string
  /** Writes the numbers of the axis, which are `step` apart. */
  readonly formatTick: (value: number, step: number) => string
  readonly isRightToLeft: boolean
}

const TICK = { fill: 'var(--ink-muted)', fontSize: 12 }
/** Approximate width of a digit, and the space around a number of the axis. */
const [DIGIT_PX, AROUND_PX] = [7, 16]
/** Controls of direction, which have no width. */
const CONTROLS = /[\u200e\u200f\u061c\u2066-\u2069]/g

/** Bars by hour or day; the table below the chart has the same data for readers who cannot see the chart. */
export function Chart({ series, points, isByHour, nameOf, format, formatTick, isRightToLeft }: ChartProps) {
  const { locale } = useFormats()
  const time = useMemo(() => {
    const day = new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', timeZone: 'UTC' })
    const hour = new Intl.DateTimeFormat(locale, { hour: 'numeric' })
    return (at: string) => (isByHour ? hour : day).format(new Date(at))
  }, [locale, isByHour])
  const direction = isRightToLeft ? 'rtl' : 'ltr'
  const ticks = useMemo(() => ticksOf(points), [points])
  const labels = new Map(ticks.map((tick) => [tick, formatTick(tick, ticks[1]! - ticks[0]!)]))
  const width = Math.max(...[...labels.values()].map((label) => label.replace(CONTROLS, '').length)) * DIGIT_PX + AROUND_PX
  return (
    <div aria-hidden dir="ltr" className="relative h-72">
      {/* Positioned absolutely, so that the chart's width never keeps the page from becoming narrower. */}
      <div className="absolute inset-0 overflow-hidden">
        <ResponsiveContainer width="100%" height="100%">
          <BarChart data={[...points]} margin={{ top: 8, right: 4, bottom: 0, left: 4 }} accessibilityLayer={false}>
            <CartesianGrid vertical={false} stroke="var(--line)" />
            <XAxis
              dataKey="at"
              tickFormatter={time}
              tick={{ ...TICK, direction }}
              interval="equidistantPreserveStart"
              padding={{ left: 12, right: 12 }}
              tickLine={false}
              axisLine={{ stroke: 'var(--line)' }}
              minTickGap={24}
              reversed={isRightToLeft}
            />
            <YAxis
              ticks={ticks}
              domain={[0, ticks.at(-1)!]}
              interval={0}
              tick={({ x, y, payload }) => (
                <text
                  {...TICK}
                  x={x}
                  y={y}
                  dy="0.355em"
                  // The numbers stand next to the bars, in either direction.
                  textAnchor="end"
                  direction={direction}
                  className="tabular-nums"
                >
                  {labels.get(payload.value)}
                </text>
              )}
              tickLine={false}
              axisLine={false}
              width={width}
              orientation={isRightToLeft ? 'right' : 'left'}
            />
            <Tooltip
              isAnimationActive={false}
              cursor={{ fill: 'var(--hover)' }}
              content={({ active, payload, label }) =>
                active &&
                payload.length > 0 && (
                  <div dir={direction} className="rounded-lg border bg-raised p-3 text-sm shadow-raised">
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
