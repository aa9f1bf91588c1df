import WordExtractor from 'word-extractor'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'

/**
 * Reads a document of Word 97 to 2003: headers once, paragraphs, table rows, notes and text boxes. The package that
 * reads the format does not report headings and lists.
 * @throws {ParseFailure} `password_required` if the document is encrypted.
 * @throws {ParseFailure} `corrupt` if the document is corrupted.
 */
export async function readDoc(bytes: Uint8Array, builder: DocumentBuilder): Promise<void> {
  const document = await new WordExtractor().extract(Buffer.from(bytes)).catch((error: unknown) => {
    if (error instanceof Error && /password|encrypt/i.test(error.message))
      throw new ParseFailure('password_required', 'The document needs a password to open. Upload a copy without one.')
    throw new ParseFailure('corrupt', 'The Word document cannot be read: its parts are corrupted.', { cause: error })
  })
  const headers = document.getHeaders({ includeFooters: true })
  const parts = [
    headers,
    document.getBody(),
    document.getFootnotes(),
    document.getEndnotes(),
    document.getTextboxes({ includeHeadersAndFooters: false }),
  ]
  for (const part of parts) {
    const seen = new Set<string>()
    for (const line of part.split('\n')) {
      if (part === headers && seen.has(line)) continue
      seen.add(line)
      const cells = line.split('\t').map((cell) => cell.trim())
      if (cells.length > 1 && line.endsWith('\t')) builder.add('table_row', cells.slice(0, -1).join(' | '))
      else builder.add('paragraph', line)
    }
  }
}
