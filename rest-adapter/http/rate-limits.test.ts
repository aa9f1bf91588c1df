import { expect, it } from 'vitest'
import { formatDuration, rateLimitHeaders } from './rate-limits.ts'

it.each([
  [0, '0s'],
  [20, '20ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [59_999, '59.999s'],
  [60_000, '1m0s'],
  [360_000, '6m0s'],
  [90_250, '1m30.25s'],
  [3_600_000, '1h0m0s'],
])('formats %i ms like Go', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

it('omits limits that a key does not have', () => {
  expect(rateLimitHeaders(null)).toEqual({})
  expect(rateLimitHeaders({ requests: null, tokens: { limit: 1_000, remaining: 0, resetMs: 60_000 } })).toEqual({
    'x-ratelimit-limit-tokens': '1000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '1m0s',
  })
})
