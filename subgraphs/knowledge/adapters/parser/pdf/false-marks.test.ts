import { expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '../limits.ts'
import { DocumentBuilder } from '../readers/document-builder.ts'
import { type Drawn, drawPdf, rtl } from '../test-support/draw-pdf.ts'
import { readPdf } from './read-pdf.ts'

async function read(lines: readonly Drawn[]): Promise<string> {
  const builder = new DocumentBuilder(DEFAULT_LIMITS)
  return builder.build('application/pdf', await readPdf(drawPdf([lines]), builder, DEFAULT_LIMITS)).text
}

const WORDS = ['أنهار', 'أبواب', 'أسماء', 'أعمال', 'أوقات', 'أشجار']
/** Returns lines of words with this first letter, each letter a glyph. */
function textOf(first: string, others: readonly string[] = []): readonly Drawn[] {
  const lines = Array.from({ length: 8 }, (_, line) => WORDS.map((word, at) => others[line * WORDS.length + at] ?? first + word.slice(1)))
  return lines.map((words, line) => {
    const drawn = rtl(550, 100 + 14 * line, words.join(' '))
    const glyphs = words
      .map((word) => word.match(new RegExp(`^${first}|[^]`, 'gu'))!)
      .flatMap((letters, at) => (at > 0 ? [' ', ...letters] : letters))
      .reverse()
    return { ...drawn, glyphs }
  })
}
/** A mark with its own glyph. */
const marked: Drawn = { x: 100, y: 300, glyphs: [...'ملع', '\u064f'], size: 10, isBold: false }

it('removes an Arabic mark that the glyph label has but the glyph does not draw', async () => {
  const text = await read([...textOf('أُ'), marked])
  expect(text).toContain('أنهار أبواب أسماء')
  expect(text).not.toContain('أُ')
})

it('preserves a mark that an unlabelled glyph draws beside the letter', async () => {
  const drawn: Drawn = { x: 300, y: 330, glyphs: [...'ديع', '\u001d', 'أُ'], size: 10, isBold: false }
  expect(await read([...textOf('أُ'), marked, drawn])).toContain('أُعيد')
})

it('preserves marks on some letters only, marks that no other glyph draws, and marks of vocalized text', async () => {
  const bare = WORDS.concat(WORDS)
  expect(await read([...textOf('أُ', bare), marked])).toContain('أُنهار')
  expect(await read(textOf('أُ'))).toContain('أُنهار')
  const vocalised = Array.from({ length: 12 }, (_, line) => ({ ...marked, y: 300 + 14 * line, glyphs: [...'ُمُلُع'] }))
  expect(await read([...textOf('أُ'), ...vocalised])).toContain('أُنهار')
})
