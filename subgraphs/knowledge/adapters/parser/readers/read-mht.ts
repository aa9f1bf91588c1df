import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtmlPage } from '../html/read-html.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { parseMail } from './read-mail.ts'

/**
 * Reads the page of a web archive, which is a web page with its images in one file.
 * @throws {ParseFailure} `corrupt` if the archive is corrupted or has no page.
 */
export async function readMht(bytes: Uint8Array, builder: DocumentBuilder): Promise<void> {
  const { html } = await parseMail(bytes)
  if (!html) throw new ParseFailure('corrupt', 'The web archive cannot be read: it has no page.')
  readHtmlPage(html, builder)
}
