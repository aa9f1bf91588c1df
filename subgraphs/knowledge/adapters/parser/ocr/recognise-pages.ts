import { findLines } from '../../../domain/text/find-lines.ts'
import { normaliseText } from '../../../domain/text/normalise-text.ts'
import type { RecognisedLayout, RecognisedPage } from '../../../ports/page-recogniser.ts'
import { isLegible } from '../pdf/text-quality.ts'
import { openPageImages } from './page-images.ts'
import type { PageReader, PageText, Paragraph } from './page-reader.ts'

/** Lengths are kept in tenths of a unit. */
const TENTHS = 10
/** The two line feeds between paragraphs. */
const PARAGRAPH_END = 2

/**
 * Yields the text of each page in turn.
 * @throws {Error} at the first page that cannot be drawn or recognised.
 */
export async function* recognisePages(
  reader: PageReader,
  bytes: Uint8Array,
  { mediaType, pages }: { readonly mediaType: string; readonly pages: readonly number[] },
): AsyncGenerator<RecognisedPage> {
  const imageOf = await openPageImages(bytes, mediaType)
  for (const page of pages) {
    const image = await imageOf(page)
    const read = reader.read(image)
    const confidence = Math.round(read.confidence)
    const paragraphs = read.paragraphs
      .map(({ text, lines }) => ({ text: normaliseText(text), lines }))
      .filter(({ text }) => /[\p{L}\p{N}]/u.test(text))
    const texts = paragraphs.map(({ text }) => text)
    if (texts.length === 0 || !isLegible(texts.join(' '), 0)) yield { page, confidence, paragraphs: [] }
    else yield { page, confidence, paragraphs: texts, layout: layOut(paragraphs, read, image.scale) }
  }
}

function layOut(paragraphs: readonly Paragraph[], { width, height }: Pick<PageText, 'width' | 'height'>, scale: number): RecognisedLayout {
  const toUnit = (pixels: number) => Math.round((pixels / scale) * TENTHS) / TENTHS
  let from = 0
  const lines = paragraphs.flatMap(({ text, lines: own }) => {
    const charStart = from
    from += text.length + PARAGRAPH_END
    const ranges = findLines(
      text,
      own.map((line) => line.text),
    )
    return own.flatMap(({ box }, index) => {
      const { start, end } = ranges[index]!
      if (end === start) return []
      const placed = { x: toUnit(box.x), y: toUnit(box.y), width: toUnit(box.width), height: toUnit(box.height) }
      return { charStart: charStart + start, charEnd: charStart + end, ...placed }
    })
  })
  return { width: toUnit(width), height: toUnit(height), lines }
}
