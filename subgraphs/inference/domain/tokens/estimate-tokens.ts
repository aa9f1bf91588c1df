/**
 * An upper estimate of the tokens of a text, for models whose tokenizer is not available here. Takes one pass without
 * allocation. The rules follow byte-pair vocabularies of 100,000 pieces and more (cl100k: 1.32 tokens for an English
 * word, 4.2 for an Arabic one of 6 letters):
 * - a word of ASCII letters: a token for every 4 letters; beyond the 12th letter, for every 2, because such words are
 *   rarely words;
 * - a run of ASCII digits: a token for every 2; every other visible ASCII character: one;
 * - white space: none for a single space before a word, one for a longer run or a line break;
 * - other scripts: a token for every 1.2 UTF-16 units, which is 1.4 with the spaces between words; from U+2E80 on
 *   (Chinese, Japanese, Korean, emoji) 1.5 for each unit. Never more than a token for each byte of UTF-8, nor less than
 *   1 for a text that is not empty.
 */
export function estimateTokens(text: string): number {
  let tokens = 0
  let index = 0
  const length = text.length
  while (index < length) {
    const kind = classifyUnit(text.charCodeAt(index))
    const start = index
    do index += 1
    while (index < length && classifyUnit(text.charCodeAt(index)) === kind)
    tokens += tokensOfRun(kind, index - start, text.charCodeAt(start))
  }
  return Math.ceil(tokens)
}

/** UTF-16 units that one token stands for at most, by these rules: a word of 4 letters and the space after it. */
const MOST_UNITS = 5

/** At most what `estimateTokens` returns, without reading the text. */
export function fewestTokens({ length }: string): number {
  return Math.floor(length / MOST_UNITS)
}

const LETTER = 0
const DIGIT = 1
const SPACE = 2
const SIGN = 3
const OTHER = 4
const DENSE = 5

/** Longest run of ASCII letters that counts as a word. */
const LONGEST_WORD = 12

function classifyUnit(unit: number): number {
  if (unit >= 0x80) return unit < 0x2e80 ? OTHER : DENSE
  if ((unit >= 0x61 && unit <= 0x7a) || (unit >= 0x41 && unit <= 0x5a)) return LETTER
  if (unit >= 0x30 && unit <= 0x39) return DIGIT
  return unit <= 0x20 ? SPACE : SIGN
}

function tokensOfRun(kind: number, length: number, first: number): number {
  switch (kind) {
    case LETTER:
      return Math.ceil(Math.min(length, LONGEST_WORD) / 4) + Math.ceil(Math.max(length - LONGEST_WORD, 0) / 2)
    case DIGIT:
      return Math.ceil(length / 2)
    case SPACE:
      // Indentation is one token for up to about 8 spaces. Line breaks are tokens of their own.
      return length === 1 && first === 0x20 ? 0 : Math.ceil(length / 4)
    case OTHER:
      return length / 1.2
    case DENSE:
      return length * 1.5
    default:
      return length
  }
}
