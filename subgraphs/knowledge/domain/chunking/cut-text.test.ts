import fc from 'fast-check'
import { expect, it } from 'vitest'
import { shorten } from './cut-text.ts'

it('truncates a text of any length to the limit, at a space if there is one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 700 }), fc.integer({ min: 2, max: 250 }), (length, maxChars) => {
      const text = 'word '.repeat(140).slice(0, length)
      const short = shorten(text, maxChars)
      expect(short.length).toBeLessThanOrEqual(maxChars)
      if (length <= maxChars) expect(short).toBe(text)
      else expect(text.startsWith(short.slice(0, -1))).toBe(true)
    }),
  )
  expect(shorten('A heading of several words', 15)).toBe('A heading of…')
})
