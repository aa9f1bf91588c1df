import fc from 'fast-check'
import { expect, it } from 'vitest'
import { grams, words } from '../../domain/text/text-analysis.ts'
import { decodeCounts, encodeCounts, termKey } from './term-counts.ts'

const count = (terms: readonly string[], term: string) => terms.filter((other) => other === term).length

it('returns the frequency of each term in a chunk, and the lengths', () => {
  const term = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(fc.array(term, { maxLength: 60 }), fc.array(term, { maxLength: 200 }), (words, grams) => {
      const counts = decodeCounts(encodeCounts({ words, grams }))
      expect(counts.lengths).toEqual({ words: words.length, grams: grams.length })
      for (const word of words) expect(counts.of(termKey('words', word))).toBe(count(words, word))
      for (const gram of grams) expect(counts.of(termKey('grams', gram))).toBe(count(grams, gram))
    }),
  )
})

it('distinguishes words of three letters from 3-grams, in Arabic and in English', () => {
  const text = 'قال علم كتب بيت ولد the cat sat and ran far from old ice 123 124 125 في عام ١٩٩٠ حرب سنة دار رجل'
  const chunk = { words: words(text), grams: grams(text) }
  const keys = [...new Set(chunk.words)].map((word) => termKey('words', word)).concat(chunk.grams.map((gram) => termKey('grams', gram)))
  expect(new Set(keys).size).toBe(new Set(chunk.words).size + new Set(chunk.grams).size)
  const letters = [...'اأبتثجحخدذرزسشصضطظعغفقكلمنهويabcdefghijklmnopqrstuvwxyz0123456789']
  const others = new Set(letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => termKey('grams', a + b + c)))))
  const shared = letters.flatMap((a) => letters.map((b) => termKey('words', `${a}${b}a`))).filter((key) => others.has(key))
  expect(others.size).toBeGreaterThan(letters.length ** 3 * 0.999)
  expect(shared.length).toBeLessThan(3)
})

it('caps the frequency of a term at 255', () => {
  expect(decodeCounts(encodeCounts({ words: Array(1_000).fill('la'), grams: [] })).of(termKey('words', 'la'))).toBe(255)
})
