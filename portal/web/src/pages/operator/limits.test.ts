import { expect, test } from 'vitest'
import { limitOf, typedOf } from './limits.ts'

test('sizes are entered in mebibytes, counts as they are', () => {
  expect(limitOf('storageBytes', '1500.5')).toBe(1500.5 * 1024 ** 2)
  expect(limitOf('maxFileBytes', '٢٥')).toBe(25 * 1024 ** 2)
  expect(limitOf('requestsPerMinute', '600')).toBe(600)
})

test('an empty field means the limit of the plan', () => {
  expect(limitOf('vectors', '  ')).toBeNull()
})

test.each([
  ['vectors', '1.5'],
  ['vectors', '-1'],
  ['vectors', '9999999999'],
  ['maxFileBytes', '3000'],
  ['storageBytes', 'much'],
] as const)('%s: %s is not allowed', (limit, typed) => {
  expect(limitOf(limit, typed)).toBeUndefined()
})

test('current limits round-trip without a change', () => {
  const limits = {
    storageBytes: 1_234_567,
    vectors: 10,
    maxFileBytes: null,
    requestsPerMinute: null,
    tokensPerMinute: 7,
    concurrency: 0,
    ocrPages: 0,
  }
  const typed = typedOf(limits)
  expect(Object.entries(typed).map(([limit, value]) => limitOf(limit as keyof typeof limits, value))).toEqual(Object.values(limits))
})
