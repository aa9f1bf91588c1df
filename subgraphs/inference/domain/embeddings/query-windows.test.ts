import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cutIntoWindows, MAX_WINDOWS, meanDirection } from './query-windows.ts'

it('windows contain every word in order, and have about the same length', () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[a-z٠-٩ء-ي]{1,12}$/), { minLength: 1, maxLength: 300 }),
      fc.integer({ min: 1, max: MAX_WINDOWS }),
      (words, count) => {
        const text = words.join(' ')
        const windows = cutIntoWindows(text, count)
        expect(windows.join(' ').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
        expect(Math.max(...windows.map(({ length }) => length))).toBeLessThanOrEqual(Math.ceil(text.length / count) + 1)
      },
    ),
  )
})

it('a word longer than a window is cut between characters', () => {
  expect(cutIntoWindows('😀'.repeat(9), 4).every((window) => /^(😀)+$/u.test(window))).toBe(true)
})

it('the mean of unit vectors has length 1', () => {
  expect([...meanDirection([Float32Array.from([1, 0]), Float32Array.from([0, 1])])].map((component) => component.toFixed(3))).toEqual([
    '0.707',
    '0.707',
  ])
  expect([...meanDirection([Float32Array.from([1, 0]), Float32Array.from([-1, 0])])]).toEqual([1, 0])
})
