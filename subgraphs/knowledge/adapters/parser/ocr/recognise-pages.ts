import { normaliseText } from '../../../domain/text/normalise-text.ts'
import type { RecognisedPage } from '../../../ports/page-recogniser.ts'
import { isLegible } from '../pdf/text-quality.ts'
import { openPictures } from './page-pictures.ts'
import type { PageReader } from './page-reader.ts'

/**
 * Yields the text of each page in turn.
 * @throws {Error} at the first page that cannot be drawn or recognised.
 */
export async function* recognisePages(
  reader: PageReader,
  bytes: Uint8Array,
  { mediaType, pages }: { readonly mediaType: string; readonly pages: readonly number[] },
): AsyncGenerator<RecognisedPage> {
  const pictures = await openPictures(bytes, mediaType)
  for (const page of pages) {
    const { confidence, paragraphs } = reader.read(await pictures(page))
    const texts = paragraphs.map(normaliseText).filter((text) => /[\p{L}\p{N}]/u.test(text))
    const isText = isLegible(texts.join(' '), 0)
    yield { page, confidence: Math.round(confidence), paragraphs: isText ? texts : [] }
  }
}
