import { ParseFailure } from '../../../ports/document-parser.ts'
import { readHtmlPage } from '../html/read-html.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { parseMail } from './read-mail.ts'

/** A web page that was saved with its pictures in one file: the page. */
export async function readMht(bytes: Uint8Array, builder: DocumentBuilder): Promise<void> {
  const { html } = await parseMail(bytes)
  if (!html) throw new ParseFailure('corrupt', 'The file cannot be read: it has no page in it.')
  readHtmlPage(html, builder)
}
