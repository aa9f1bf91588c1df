import mammoth from 'mammoth'
import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtmlText } from '../html/read-html.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { ZipArchive } from '../zip.ts'

type Input = Parameters<typeof mammoth.convertToHtml>[0]

const STYLES = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh", "r[style-name='Strong'] => span"]

/**
 * Reads a Word document through mammoth's HTML, which tolerates XML that is not well-formed. mammoth reads the archive
 * through `ZipArchive`, which checks it, and opens no file or link.
 * @throws {ParseFailure} `corrupt` if mammoth cannot read the document.
 * @throws {ParseFailure} `limit_exceeded` if it exceeds a limit.
 */
export async function readDamagedDocx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = new ZipArchive(bytes, limits)
  try {
    // mammoth's types accept paths and buffers only. Its code also accepts an open archive.
    const { value: html } = await mammoth.convertToHtml({ file: openForMammoth(archive) } as unknown as Input, {
      styleMap: STYLES,
      includeEmbeddedStyleMap: false,
      externalFileAccess: false,
      convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
    })
    readHtmlText(html, builder)
  } catch (error) {
    if (error instanceof ParseFailure) throw error
    if (error instanceof RangeError) throw new ParseFailure('limit_exceeded', 'The Word document is nested too deeply.')
    throw new ParseFailure('corrupt', 'The Word document cannot be read: its parts are damaged.')
  }
}

/** Offers the interface of mammoth's own zip reader, `lib/zipfile.js`. */
function openForMammoth(archive: ZipArchive) {
  return {
    exists: (name: string) => archive.has(name),
    async read(name: string, encoding?: string) {
      const bytes = await archive.read(name)
      if (encoding === undefined) return bytes
      return encoding === 'base64' ? Buffer.from(bytes).toString('base64') : new TextDecoder(encoding).decode(bytes)
    },
  }
}
