import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { grams, normalise, normaliseForEmbedding, queryTerms, words } from './text-analysis.ts'

describe('Text normalization', () => {
  for (const [what, text, expected] of [
    ['harakat and tatweel', 'مُحَمَّـــد', 'محمد'],
    ['forms of alef, yeh, teh marbuta and hamza', 'أإآٱ ى ة ؤ ئ', 'اااا ي ه و ي'],
    ['Arabic-Indic digits', '٠١٢٣٤٥٦٧٨٩', '0123456789'],
    ['Persian letters and digits', 'کتابی ۀ ۰۱۲۳۴۵۶۷۸۹', 'كتابي ه 0123456789'],
    ['thousands separators', '١٬٢٣٤٬٥٦٧ 1,234,567 1234567 12,34 3,5,1000', '1234567 1234567 1234567 12,34 3,5,1000'],
    ['words with joiners and direction marks in them', 'می\u200cخواهم soft\u00adware \u200fمصر', 'ميخواهم software مصر'],
    ['presentation forms, lam-alef among them', 'ﻼﻣﻠ', 'لامل'],
    ['compatibility forms of Latin', 'ﬁle ②', 'file 2'],
  ] as const) {
    it(`unifies ${what}`, () => expect(normalise(text)).toBe(expected))
  }
})

describe('Text normalization for embeddings', () => {
  it('removes presentation forms, harakat and tatweel', () => expect(normaliseForEmbedding('ﻼ مُحَمَّـــد')).toBe('لا محمد'))
  it('unifies digits and Persian yeh and kaf', () => expect(normaliseForEmbedding('٣ ۴ کی')).toBe('3 4 كي'))
  it('preserves spelling, and everything that is not Arabic', () => {
    const text = '\ufeffمدرسة أحمد إلى 3 x² ½ ﬁle café 陳'
    expect(normaliseForEmbedding(text)).toBe(text)
  })
})

describe('Word terms', () => {
  // Except for Arabic function words, the expected values come from the reference method, `fusion.py` of the
  // evaluation.
  for (const [text, expected] of [
    ['The libraries were visited by students, visiting classes', ['library', 'visit', 'student', 'visit', 'class']],
    ['والمدرسة للمعلمين بالكتابات', ['مدرس', 'معلم', 'كتاب']],
    ['ما هي المدينة التي في مصر؟', ['مدين', 'مصر']],
    ['أي كلية منها يتم بناؤها لهم، ولكن كل كلية؟', ['كل', 'بناو', 'كل']],
    ['قال عم غراهام بل', ['قال', 'عم', 'غراهام', 'بل']],
    ['Cafés in 1453, ٣٠٠ m²', ['café', '1453', '300', 'm2']],
    ['snake_case', ['snake', 'case']],
    ['وPython و كوفيد19', ['python', 'كوفيد', '19']],
    ['', []],
  ] as const) {
    it(`returns light stems without stop words for "${text}"`, () => expect(words(text)).toEqual(expected))
  }

  it('unifies spellings of one word', () => {
    const [first] = words('المدرسة')
    for (const spelling of ['المدرسه', 'اَلْمَدْرَسَةُ', 'الـمـدرسة', 'ﺍﻟﻤﺪﺭﺳﺔ', 'ومدرسة']) expect(words(spelling)).toEqual([first])
  })
})

describe('N-grams', () => {
  it('marks the edges of words and does not cross them', () => expect(grams('an ox!')).toEqual(['^an', 'an$', '^ox', 'ox$']))
  it('preserves repeats and one-letter words', () => expect(grams('a aaaa')).toEqual(['^a$', '^aa', 'aaa', 'aaa', 'aa$']))

  it('returns three code points each and never half of a surrogate pair, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const gram of grams(text)) {
          expect(Array.from(gram)).toHaveLength(3)
          expect(gram.isWellFormed()).toBe(true)
        }
      }),
    )
  })
})

describe('Text analysis limits', () => {
  it('truncate a word that is longer than any real word', () => expect(words('x'.repeat(1_000_000))).toEqual(['x'.repeat(64)]))
  it('search a long query by its first terms', () => {
    const { words: stems, grams: threes } = queryTerms(Array.from({ length: 9_000 }, (_, i) => (i * 7919).toString(36)).join(' '))
    expect([stems.length, threes.length]).toEqual([512, 1_536])
  })
  it('return each term of a query once', () => expect(queryTerms('cats cats cat').words).toEqual(['cat']))
})
