import fc from 'fast-check'
import { expect, it } from 'vitest'
import { splitSentences } from './sentences.ts'

const split = (text: string) => [...splitSentences(text)].map(({ start, end }) => text.slice(start, end).trim())

it.each([
  { name: 'at Arabic question marks and full stops', text: 'ما هذا؟ هذا كتاب. نعم!', sentences: ['ما هذا؟', 'هذا كتاب.', 'نعم!'] },
  { name: 'not after Arabic titles', text: 'قال د. أحمد ذلك. ثم جاء أ. د. سالم.', sentences: ['قال د. أحمد ذلك.', 'ثم جاء أ. د. سالم.'] },
  {
    name: 'not after Arabic years, pages and volumes',
    text: 'ولد سنة 1350 هـ. في ج. 2 ص. 15 تفصيل.',
    sentences: ['ولد سنة 1350 هـ. في ج. 2 ص. 15 تفصيل.'],
  },
  { name: 'not inside numbers', text: 'السعر 12.50 دولار. انتهى.', sentences: ['السعر 12.50 دولار.', 'انتهى.'] },
  {
    name: 'not after English abbreviations',
    text: 'Dr. Smith met Mrs. Jones. They left.',
    sentences: ['Dr. Smith met Mrs. Jones.', 'They left.'],
  },
  { name: 'after a word that ends like an abbreviation', text: 'هذا معهد. وهذا بيت.', sentences: ['هذا معهد.', 'وهذا بيت.'] },
])('splits $name', ({ text, sentences }) => {
  expect(split(text)).toEqual(sentences)
})

it('returns spans without gaps that cover the text, for any sentence length', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('كلمة ', 'word ', '. ', '؟ ', 'د. ', 'x'.repeat(9_000), '👩‍👧', '\n')), (parts) => {
      const text = parts.join('')
      let last = 0
      for (const { start, end } of splitSentences(text)) {
        expect(start).toBe(last)
        expect(end).toBeGreaterThan(start)
        last = end
      }
      expect(last).toBe(text.length)
    }),
  )
})

it('does not split a grapheme cluster at the edge of its window', () => {
  const family = '👩‍👩‍👧‍👦'
  for (const { start } of splitSentences(family.repeat(5_000))) expect(start % family.length).toBe(0)
})
