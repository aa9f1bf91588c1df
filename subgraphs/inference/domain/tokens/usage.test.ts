import { expect, it } from 'vitest'
import { reportedUsage } from './usage.ts'

it.each<[string, object | null, object | undefined]>([
  ['nothing', null, undefined],
  [
    'no details',
    { prompt_tokens: 5, completion_tokens: 1 },
    { inputTokens: 5, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 1 },
  ],
  ['zeros', { prompt_tokens: 0, completion_tokens: 0 }, { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 }],
  [
    'both buckets of the cache',
    { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 } },
    { inputTokens: 3, cachedInputTokens: 4, cacheWriteTokens: 3, outputTokens: 1 },
  ],
  [
    'more in the buckets than in the total',
    { prompt_tokens: 10, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 8 } },
    { inputTokens: 0, cachedInputTokens: 8, cacheWriteTokens: 2, outputTokens: 1 },
  ],
  ['more than a GraphQL integer in total', { prompt_tokens: 2 ** 31 - 1, completion_tokens: 1 }, undefined],
  ['a malformed count', { prompt_tokens: -1, completion_tokens: 1 }, undefined],
])('usage with %s is split into disjoint buckets that sum to the prompt', (_name, usage, expected) => {
  expect(reportedUsage({ usage })).toEqual(expected)
})
