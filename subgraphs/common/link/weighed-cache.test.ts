import fc from 'fast-check'
import { expect, it } from 'vitest'
import { WeighedCache } from './weighed-cache.ts'

it('stores no more than fits, and evicts the least recently used', () => {
  const cache = new WeighedCache<number>(100)
  for (const [i, owner] of ['a', 'b', 'c', 'd', 'e'].entries()) cache.set(owner, i, 20, owner)
  cache.get('a')
  cache.set('f', 6, 20, 'f')
  expect(['a', 'b', 'c', 'd', 'e', 'f'].filter((key) => cache.get(key) !== undefined)).toEqual(['a', 'c', 'd', 'e', 'f'])
})

it('lets one owner evict only its own entries', () => {
  const cache = new WeighedCache<number>(100)
  for (let i = 0; i < 7; i++) cache.set(`other ${i}`, i, 10, `other ${i}`)
  for (let i = 0; i < 1_000; i++) cache.set(`mine ${i}`, i, 10, 'me')
  expect(Array.from({ length: 7 }, (_, i) => cache.get(`other ${i}`))).toEqual([0, 1, 2, 3, 4, 5, 6])
  expect(cache.get('mine 999')).toBe(999)
  expect(cache.weight).toBe(90)
})

it('does not store what is heavier than a share', () => {
  const cache = new WeighedCache<number>(100)
  cache.set('a', 1, 26, 'me')
  expect([cache.get('a'), cache.weight]).toEqual([undefined, 0])
})

it('weighs exactly what it stores, through all changes', () => {
  const step = fc.record({ key: fc.nat(9), weight: fc.nat(40), owner: fc.constantFrom('a', 'b', 'c'), isDeleted: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const cache = new WeighedCache<number>(100)
      const weights = new Map<string, number>()
      for (const { key, weight, owner, isDeleted } of steps) {
        if (isDeleted) cache.delete(`${key}`)
        else cache.set(`${key}`, key, weight, owner)
        weights.set(`${key}`, weight)
        const cached = [...weights].filter(([each]) => cache.get(each) !== undefined)
        expect(cache.weight).toBe(cached.reduce((sum, [, each]) => sum + each, 0))
        expect(cache.weight).toBeLessThanOrEqual(100)
      }
    }),
  )
})
