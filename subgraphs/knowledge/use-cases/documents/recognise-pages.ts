import { insertPages } from '../../domain/recognised-pages.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import { type ParsedDocument, ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { RecognisedPage } from '../../ports/page-recogniser.ts'
import type { Deps } from '../deps.ts'

/** The pages of one document that are recognised: an hour of one core, at most three. A warning names the others. */
const MAX_PAGES = 500
/** The pages that one blob keeps, and one hold pays for. A crash repeats at most so many. */
const PAGES_PER_BLOB = 10
/**
 * Pages that one blob keeps. Blobs of paid pages are the list alone, as are those of earlier versions, which nobody paid
 * for. A blob is written before each step of a payment, so that a repeat neither pays twice nor forgets to.
 */
type StoredPages = readonly RecognisedPage[] | UnpaidPages

interface UnpaidPages {
  readonly holdId: string
  /** Empty while they are being recognised. */
  readonly pages: readonly RecognisedPage[]
}

/** Time to free a hold whose pages could not be recognised. */
const FREE_TIMEOUT_MS = 10_000
/** The characters of all recognised pages, as many as the parser allows bytes of text. */
const MAX_CHARS = 20 * 1024 * 1024

/**
 * Recognises the pages that parsing left, and returns the document with their text. `told` is called after each page
 * with the number of pages that are done; `isKept` says that a crash would not repeat them. The pages are kept as long
 * as the document, so that it is read the same way when its index is repaired, and a retry pays for no page again.
 * @throws {KisError} `insufficient_quota` if the quota of the plan or the wallet does not cover the next pages.
 * @throws {ParseFailure} `no_text` if no page has text. `limit_exceeded` if there is too much.
 */
export async function recognisePages(
  deps: Pick<Deps, 'blobs' | 'recogniser' | 'pageBilling'>,
  { _id, organizationId, fileId }: Pick<DocumentRecord, '_id' | 'organizationId' | 'fileId'>,
  { file, parsed }: { readonly file: Uint8Array | StreamedFile; readonly parsed: ParsedDocument },
  report: (done: number, isStored: boolean) => Promise<void>,
  contextNow: () => Promise<CallContext>,
  signal: AbortSignal,
): Promise<ParsedDocument> {
  const { blobs, recogniser, pageBilling } = deps
  const wanted = parsed.unread.slice(0, MAX_PAGES)
  const all: RecognisedPage[] = []
  let chars = 0
  for (let done = 0; done < wanted.length; ) {
    const group = toGroup(wanted[done]!)
    const own = wanted.slice(done, done + PAGES_PER_BLOB).filter((page) => toGroup(page) === group)
    const key = `${_id}_ocr_${fileId}_${group}`
    const stored = await readStoredPages(blobs, key)
    const pages = [...pagesOf(stored, own)]
    let holdId = stored && 'holdId' in stored ? stored.holdId : null
    if (pages.length === 0) {
      const context = await contextNow()
      if (holdId === null || !(await pageBilling.renew(holdId, context))) holdId = await pageBilling.hold(own.length, context)
      await storePages(blobs, key, { holdId, pages })
      try {
        for await (const page of recogniser.recognise({ organizationId, file, mediaType: parsed.mediaType, pages: own }, signal)) {
          pages.push(page)
          if (pages.length < own.length) await report(done + pages.length, false)
        }
      } catch (error) {
        // The document may be gone, so nobody would use the hold. If billing is away, the hold expires.
        await pageBilling.settle(holdId, 0, { ...context, signal: AbortSignal.timeout(FREE_TIMEOUT_MS) }).catch(() => false)
        throw error
      }
      await storePages(blobs, key, { holdId, pages })
    }
    if (holdId !== null) await pay(deps, key, { holdId, pages }, contextNow)
    all.push(...pages)
    done += own.length
    chars += pages.reduce((sum, { paragraphs }) => sum + paragraphs.join('').length, 0)
    if (chars > MAX_CHARS)
      throw new ParseFailure('limit_exceeded', `OCR found more than ${MAX_CHARS} characters in the document. Split it into smaller files.`)
    await report(done, true)
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

/** Whether a page counts: it was read, or a limit ended it after the work that it takes. */
function isPaid({ confidence, isOutOfTime, isOutOfMemory }: RecognisedPage): boolean {
  return confidence !== null || isOutOfTime === true || isOutOfMemory === true
}

/** Charges the pages that were recognised, under another hold if theirs has expired meanwhile. */
async function pay(
  { blobs, pageBilling }: Pick<Deps, 'blobs' | 'pageBilling'>,
  key: string,
  { holdId, pages }: UnpaidPages,
  contextNow: () => Promise<CallContext>,
): Promise<void> {
  const paid = pages.filter(isPaid).length
  if (!(await pageBilling.settle(holdId, paid, await contextNow()))) {
    const another = await pageBilling.hold(paid, await contextNow())
    await storePages(blobs, key, { holdId: another, pages })
    await pageBilling.settle(another, paid, await contextNow())
  }
  await storePages(blobs, key, pages)
}

async function storePages(blobs: Deps['blobs'], key: string, stored: StoredPages): Promise<void> {
  await blobs.put(key, Buffer.from(JSON.stringify(stored)))
}

async function readStoredPages(blobs: Deps['blobs'], key: string): Promise<StoredPages | null> {
  const bytes = await blobs.get(key)
  return bytes && (JSON.parse(Buffer.from(bytes).toString()) as StoredPages)
}

/** Returns the pages that an earlier run kept. Returns none if it looked for others. */
function pagesOf(stored: StoredPages | null, own: readonly number[]): readonly RecognisedPage[] {
  const pages = stored === null ? [] : 'holdId' in stored ? stored.pages : stored
  return pages.length === own.length && pages.every(({ page }, index) => page === own[index]) ? pages : []
}
