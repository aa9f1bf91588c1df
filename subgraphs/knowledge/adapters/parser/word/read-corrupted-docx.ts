import mammoth from 'mammoth'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtmlText } from '../html/read-html.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { ZipArchive } from '../zip.ts'
import { packParts } from './pack-parts.ts'

const STYLES = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh", "r[style-name='Strong'] => span"]

/**
 * Reads a Word document through mammoth's HTML, which tolerates XML that is not well-formed. mammoth opens no file or
 * link.
 * @throws {ParseFailure} `corrupt` if mammoth cannot read the document.
 * @throws {ParseFailure} `limit_exceeded` if the document exceeds a limit.
 */
export async function readCorruptedDocx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = new ZipArchive(bytes, limits)
  const parts = archive.names.filter((name) => /\.(?:xml|rels)$/.test(name))
  const buffer = await packParts(archive, parts)
  try {
    const { value: html } = await mammoth.convertToHtml(
      { buffer },
      {
        styleMap: STYLES,
        includeEmbeddedStyleMap: false,
        externalFileAccess: false,
        convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
      },
    )
    readHtmlText(html, builder)
  } catch (error) {
    if (error instanceof ParseFailure) throw error
    if (error instanceof RangeError) throw new ParseFailure('limit_exceeded', 'The Word document is nested too deeply.')
    throw new ParseFailure('corrupt', 'The Word document cannot be read: its parts are corrupted.')
  }
}
