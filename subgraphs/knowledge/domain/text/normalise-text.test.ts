import fc from 'fast-check'
import { expect, it } from 'vitest'
import { normaliseText } from './normalise-text.ts'

it.each([
  { name: 'maps presentation forms to letters', raw: 'اﻟﻌﺮﺑﻴﺔ ﻻ', text: 'العربية لا' },
  { name: 'maps marks without their carriers', raw: 'م\ufe76ن \ufe77', text: 'م\u064eن \u064e' },
  { name: 'maps the rial sign to Arabic letters', raw: '﷼', text: 'ريال' },
  { name: 'preserves ligatures that stand for a sentence', raw: 'ﷺ ﷻ ﷽', text: 'ﷺ ﷻ ﷽' },
  { name: 'leaves other compatibility characters unchanged', raw: 'x² ½ ﬁ ①', text: 'x² ½ ﬁ ①' },
  { name: 'composes', raw: 'e\u0301', text: 'é' },
  { name: 'normalizes line ends, with at most two in a row', raw: 'a\r\nb\rc\u2028d\f\n\n\n e  \n', text: 'a\nb\nc\nd\n\n e' },
  {
    name: 'removes controls, soft hyphens and bidirectional overrides',
    raw: 'a\u0000b\u001bc\u00add\u202ee\u2066f\ufeffg',
    text: 'abcdefg',
  },
  { name: 'preserves direction marks and joiners', raw: 'א\u200e می\u200cخواهم 👩‍👧', text: 'א\u200e می\u200cخواهم 👩‍👧' },
  { name: 'replaces lone surrogates', raw: 'a\ud800b', text: 'a\ufffdb' },
])('$name', ({ raw, text }) => {
  expect(normaliseText(raw)).toBe(text)
})

it('is idempotent', () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.oneof(
          fc.constantFrom('\n', '\r', ' ', '\t', '\u200b', '\ufdfa', '\ufc5e', '\u0301', '\u0640'),
          fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
        ),
      }),
      (raw) => {
        const once = normaliseText(raw)
        expect(normaliseText(once)).toBe(once)
      },
    ),
    { numRuns: 2_000 },
  )
})
