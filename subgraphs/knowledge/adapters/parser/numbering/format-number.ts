/** The formats of list numbers, named as in Office Open XML (17.18.59). */
export type Numbering =
  | 'decimal'
  | 'decimalZero'
  | 'lowerLetter'
  | 'upperLetter'
  | 'lowerRoman'
  | 'upperRoman'
  | 'arabicAlpha'
  | 'arabicAbjad'
  | 'hindiNumbers'
  | 'arabicIndic'
  | 'ordinal'
  | 'none'

/** The Hijā'ī order, which Word uses for numbering. */
const ALPHA = 'أبتثجحخدذرزسشصضطظعغفقكلمنهوي'
const ABJAD = 'أبجدهوزحطيكلمنسعفصقرشتثخذضظغ'
const ROMAN: readonly (readonly [value: number, digits: string])[] = [
  [1000, 'm'],
  [900, 'cm'],
  [500, 'd'],
  [400, 'cd'],
  [100, 'c'],
  [90, 'xc'],
  [50, 'l'],
  [40, 'xl'],
  [10, 'x'],
  [9, 'ix'],
  [5, 'v'],
  [4, 'iv'],
  [1, 'i'],
]
/**
 * Maximum number in letters or Roman numerals, whose length would otherwise be unlimited. Larger numbers are written in
 * digits.
 */
const MAX_IN_LETTERS = 3_999

/** Formats a number of a list. Returns digits if the format has no letters for it, and `''` for `none`. */
export function formatNumber(number: number, numbering: Numbering): string {
  if (numbering === 'none') return ''
  if (numbering === 'arabicIndic') return inDigits(number, 0x660)
  if (numbering === 'hindiNumbers') return inDigits(number, 0x966)
  if (numbering === 'decimalZero') return String(number).padStart(2, '0')
  if (number < 1 || number > MAX_IN_LETTERS) return String(number)
  if (numbering === 'ordinal') return number + ordinalEnding(number)
  if (numbering === 'lowerLetter') return repeated(number, 'abcdefghijklmnopqrstuvwxyz')
  if (numbering === 'upperLetter') return repeated(number, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')
  if (numbering === 'arabicAlpha') return repeated(number, ALPHA)
  if (numbering === 'arabicAbjad') return repeated(number, ABJAD)
  if (numbering === 'lowerRoman') return roman(number)
  if (numbering === 'upperRoman') return roman(number).toUpperCase()
  return String(number)
}

/** Repeats letters as Word does: aa follows z, and bb follows aa. */
function repeated(number: number, letters: string): string {
  return letters[(number - 1) % letters.length]!.repeat(Math.ceil(number / letters.length))
}

function roman(number: number): string {
  let [left, digits] = [number, '']
  for (const [value, text] of ROMAN) {
    while (left >= value) {
      digits += text
      left -= value
    }
  }
  return digits
}

function ordinalEnding(number: number): string {
  const tens = number % 100
  if (tens >= 11 && tens <= 13) return 'th'
  return ['th', 'st', 'nd', 'rd'][number % 10] ?? 'th'
}

function inDigits(number: number, zero: number): string {
  return String(number).replace(/\d/g, (digit) => String.fromCharCode(zero + Number(digit)))
}
