import { describe, expect, it } from 'vitest'
import { timesOf } from './filters.ts'
import { ticksOf, toSeries } from './series.ts'
import type { Summary } from './usage.ts'

function group(day: string, modelId: string, amount: string): Summary['groups'][number] {
  const totals = { calls: 1, inputTokens: 2, cachedInputTokens: 3, cacheWriteTokens: 4, outputTokens: 5, amount }
  return { day, hour: null, modelId, apiKeyId: null, apiKey: null, operation: null, totals }
}

describe('Usage over time', () => {
  it('has a step for each hour of a day and each day of a month, the current one last', () => {
    const now = Date.parse('2026-11-23T18:30:00Z')
    const { since, until, steps } = timesOf('day', now)
    expect([since, until, steps.length]).toEqual(['2026-11-22T19:00:00.000Z', '2026-11-23T19:00:00.000Z', 24])
    expect(timesOf('month', now)).toMatchObject({ since: '2026-10-25T00:00:00.000Z', until: '2026-11-24T00:00:00.000Z' })
    expect(timesOf('month', now).steps.at(-1)).toBe('2026-11-23T00:00:00.000Z')
  })

  it('is zero without usage', () => {
    const steps = ['2026-11-22T00:00:00.000Z', '2026-11-23T00:00:00.000Z']
    const { series, points } = toSeries([group('2026-11-23T00:00:00Z', 'a', '0.5')], steps, 'MODEL', 'amount')
    expect(series).toEqual([{ id: 'a', name: null, total: 0.5, color: 'var(--series-1)' }])
    expect(points.map(({ values }) => values)).toEqual([{ a: 0 }, { a: 0.5 }])
  })

  it('counts cached input tokens as input', () => {
    const { series } = toSeries([group('2026-11-23T00:00:00Z', 'a', '0')], [], 'MODEL', 'inputTokens')
    expect(series[0]?.total).toBe(9)
  })

  it('combines the smallest of many series', () => {
    const day = '2026-11-23T00:00:00.000Z'
    const groups = Array.from({ length: 9 }, (_, index) => group(day, `m${index}`, String(index + 1)))
    const { series, points } = toSeries(groups, [day], 'MODEL', 'amount')
    expect(series.map(({ id, total }) => [id, total])).toEqual([
      ['m8', 9],
      ['m7', 8],
      ['m6', 7],
      ['m5', 6],
      ['m4', 5],
      ['rest', 10],
    ])
    expect(points[0]?.values.rest).toBe(10)
  })
})

describe('Axis labels', () => {
  it.each([
    [0, [0, 1]],
    [3, [0, 1, 2, 3]],
    [0.0023, [0, 0.0005, 0.001, 0.0015, 0.002, 0.0025]],
    [0.3, [0, 0.1, 0.2, 0.3]],
    [970, [0, 200, 400, 600, 800, 1_000]],
    [12_345, [0, 5_000, 10_000, 15_000]],
  ])('are rounded up to %d', (highest, ticks) => {
    expect(ticksOf([{ at: '2026-01-01', values: { one: highest / 2, other: highest / 2 } }])).toEqual(ticks)
  })
})
