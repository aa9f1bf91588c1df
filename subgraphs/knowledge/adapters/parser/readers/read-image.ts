import { imageDimensionsFromData } from 'image-dimensions'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import { listTiffPages } from '../ocr/tiff-pages.ts'
import type { DocumentBuilder } from './document-builder.ts'

/** Checks the pages of an image, and leaves all of them to OCR. Returns their number. */
export async function readImage(bytes: Uint8Array, builder: DocumentBuilder, { maxPages, maxPixels }: ParserLimits): Promise<number> {
  if (!builder.defersOcr)
    throw new ParseFailure('no_text', 'The file is an image, and the collection does not use OCR. Set `ocr` of the collection to `auto`.')
  const single = imageDimensionsFromData(bytes)
  const pages = single ? [single] : listTiffPages(bytes)
  if (pages.length === 0) throw new ParseFailure('corrupt', 'The image cannot be read: it is corrupted or cut off. Upload it again.')
  if (pages.length > maxPages)
    throw new ParseFailure('limit_exceeded', `The image has more than ${maxPages} pages. Split it into smaller files.`)
  if (pages.some(({ width, height }) => width * height > maxPixels))
    throw new ParseFailure('limit_exceeded', `The image has more than ${maxPixels} pixels. Scan it at 300 dpi, or make it smaller.`)
  builder.deferPages(pages.map((_, index) => index + 1))
  return pages.length
}
