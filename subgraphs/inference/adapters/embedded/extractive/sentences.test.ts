import fc from 'fast-check'
import { expect, it } from 'vitest'
import { splitSentences } from './sentences.ts'

for (const { name, text, expected } of [
  { name: 'splits English sentences', text: 'It costs 12.50. It is red! Is it?', expected: ['It costs 12.50.', 'It is red!', 'Is it?'] },
  { name: 'splits Arabic sentences', text: 'السعر 12.50 ريال. هل هو غال؟ نعم!', expected: ['السعر 12.50 ريال.', 'هل هو غال؟', 'نعم!'] },
  { name: 'continues after Arabic abbreviations', text: 'كتبه د. سالم العتيبي. ثم نشر.', expected: ['كتبه د. سالم العتيبي.', 'ثم نشر.'] },
  {
    name: 'continues after English abbreviations',
    text: 'Dr. Smith wrote it. See p. 4 for more.',
    expected: ['Dr. Smith wrote it.', 'See p. 4 for more.'],
  },
  { name: 'removes list marks and keeps items apart', text: '- One thing\n- Another thing', expected: ['One thing', 'Another thing'] },
  {
    name: 'joins lines that were wrapped at the page width',
    text: 'The employee receives twenty-one days of paid\nleave every year.\nShort line\nnext',
    expected: ['The employee receives twenty-one days of paid leave every year.', 'Short line', 'next'],
  },
]) {
  it(name, () => expect(splitSentences(text)).toEqual(expected))
}

it('preserves every letter of the text, in order, in sentences of limited length', () => {
  const word = fc.stringMatching(/^[a-zء-ي]{1,30}[.,،!]?$/)
  fc.assert(
    fc.property(fc.array(word, { maxLength: 300 }), (words) => {
      const sentences = splitSentences(words.join(' '))
      expect(sentences.join('').replace(/\s/g, '')).toBe(words.join(''))
      for (const sentence of sentences) expect(sentence.length).toBeLessThanOrEqual(600)
    }),
  )
})
