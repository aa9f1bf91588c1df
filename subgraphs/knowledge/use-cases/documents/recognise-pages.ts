import { insertPages } from '../../domain/recognised-pages.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { type ParsedDocument, ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { RecognisedPage } from '../../ports/page-recogniser.ts'
import type { Deps } from '../deps.ts'

/** The number of pages of one document that are recognised: an hour of one core. A warning names the others. */
const MAX_PAGES = 500
/** The pages that one blob keeps. A crash repeats at most so many. Organizations take turns after them. */
const PAGES_PER_BLOB = 10
/** The characters of all recognised pages, as many as the parser allows bytes of text. */
const MAX_CHARS = 20 * 1024 * 1024

/**
 * Recognises the pages that parsing left, and returns the document with their text. `told` is called after each page
 * with the number of pages that are done; `isKept` says that a crash would not repeat them. The pages are kept as long
 * as the document, so that it is read the same way when its index is repaired.
 * @throws {ParseFailure} `no_text` if no page has text. `limit_exceeded` if there is too much.
 */
export async function recognisePages(
  { blobs, recogniser }: Pick<Deps, 'blobs' | 'recogniser'>,
  { _id, organizationId, fileId }: Pick<DocumentRecord, '_id' | 'organizationId' | 'fileId'>,
  { file, parsed }: { readonly file: Uint8Array | StreamedFile; readonly parsed: ParsedDocument },
  told: (done: number, isKept: boolean) => Promise<void>,
  signal: AbortSignal,
): Promise<ParsedDocument> {
  const wanted = parsed.unread.slice(0, MAX_PAGES)
  const all: RecognisedPage[] = []
  let chars = 0
  for (let done = 0; done < wanted.length; ) {
    const group = toGroup(wanted[done]!)
    const own = wanted.slice(done, done + PAGES_PER_BLOB).filter((page) => toGroup(page) === group)
    const key = `${_id}_ocr_${fileId}_${group}`
    const kept = await readKept(blobs, key, own)
    const pages = [...kept]
    const missing = own.slice(kept.length)
    if (missing.length > 0) {
      for await (const page of recogniser.recognise({ organizationId, file, mediaType: parsed.mediaType, pages: missing }, signal)) {
        pages.push(page)
        if (pages.length < own.length) await told(done + pages.length, false)
      }
      await blobs.put(key, Buffer.from(JSON.stringify(pages)))
    }
    all.push(...pages)
    done += own.length
    chars += pages.reduce((sum, { paragraphs }) => sum + paragraphs.join('').length, 0)
    if (chars > MAX_CHARS)
      throw new ParseFailure('limit_exceeded', `OCR found more than ${MAX_CHARS} characters in the document. Split it into smaller files.`)
    await told(done, true)
  }
  const document = insertPages(parsed, all)
  if (document.text === '')
    throw new ParseFailure(
      'no_text',
      'OCR found no text that it can read. Upload a better scan, at 300 dpi and upright, or a copy with text.',
    )
  return document
}

function toGroup(page: number): number {
  return Math.floor((page - 1) / PAGES_PER_BLOB)
}

/** Returns the pages that an earlier run kept. Returns none if it looked for others. */
async function readKept(blobs: Deps['blobs'], key: string, own: readonly number[]): Promise<readonly RecognisedPage[]> {
  const bytes = await blobs.get(key)
  if (!bytes) return []
  const kept = JSON.parse(Buffer.from(bytes).toString()) as readonly RecognisedPage[]
  return kept.length === own.length && kept.every(({ page }, index) => page === own[index]) ? kept : []
}
