import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { openPageRecogniser } from '../../subgraphs/knowledge/adapters/parser/open-page-recogniser.ts'
import { drawPage, toPng } from '../../subgraphs/knowledge/adapters/parser/test-support/scans.ts'
import type { DocumentParser } from '../../subgraphs/knowledge/ports/document-parser.ts'
import type { PageRecogniser } from '../../subgraphs/knowledge/ports/page-recogniser.ts'
import { soaking } from '../support/soak.ts'

const CORPUS = new URL('../../../shared/corpus/', import.meta.url)
const never = new AbortController().signal

/** The pages at 300 dpi, which take as long again; all of them in `npm run soak`. */
const FINE = soaking ? 4 : 1
/** Pages, and the least share of their words that OCR finds in a scan at 200 and at 300 dpi. */
const PAGES = [
  ['ar-programming-productivity.pdf', 1, 0.9, 0.9],
  ['ar-xquad-report.pdf', 1, 0.8, 0.8],
  ['ar-xquad-report.pdf', 3, 0.87, 0.87],
  ['en-federal-register-columns.pdf', 1, 0.92, 0.9],
] as const

/** Words as search sees them: without vowel marks, and with the forms of alef, ya and ta marbuta folded. */
function words(text: string): readonly string[] {
  const folded = text
    .normalize('NFKD')
    .replace(/[\p{M}\u0640\u200b-\u200f]/gu, '')
    .replaceAll('ى', 'ي')
    .replaceAll('ة', 'ه')
    .toLowerCase()
  return folded.match(/\p{L}+|\p{N}+/gu) ?? []
}

function measureRecall(reference: string, text: string): number {
  const found = new Map<string, number>()
  for (const word of words(text)) found.set(word, (found.get(word) ?? 0) + 1)
  const wanted = words(reference)
  const recognized = wanted.filter((word) => {
    const left = found.get(word) ?? 0
    found.set(word, left - 1)
    return left > 0
  })
  return recognized.length / wanted.length
}

describe.skipIf(!existsSync(CORPUS))('OCR of a scanned page', () => {
  let parser: DocumentParser
  let recogniser: PageRecogniser
  const printed: string[] = []
  beforeAll(async () => {
    parser = await openDocumentParser({ log: silentLog })
    recogniser = await openPageRecogniser({ log: silentLog })
  })
  afterAll(async () => {
    console.log(['| page | dpi | word recall | confidence | s |', '|---|---|---|---|---|', ...printed].join('\n'))
    await parser[Symbol.asyncDispose]()
    await recogniser[Symbol.asyncDispose]()
  })

  it.each(PAGES)('%s, page %i', { timeout: 300_000 }, async (file, page, at200, at300) => {
    const bytes = readFileSync(new URL(file, CORPUS))
    const { text, blocks } = await parser.parse(bytes, file, never)
    const own = blocks.filter((block) => block.page === page)
    const reference = text.slice(own[0]!.charStart, own.at(-1)!.charEnd)
    const isFine = PAGES.findIndex((one) => one[0] === file && one[1] === page) < FINE
    for (const [dpi, least] of [[200, at200] as const, ...(isFine ? [[300, at300] as const] : [])]) {
      const image = toPng(await drawPage(bytes, page, dpi))
      const startMs = performance.now()
      const input = { organizationId: 'org_1', file: image, mediaType: 'image/png', pages: [1] }
      const [read] = await Array.fromAsync(recogniser.recognise(input, never))
      const recall = measureRecall(reference, read!.paragraphs.join('\n'))
      const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
      printed.push(`| ${file}, ${page} | ${dpi} | ${recall.toFixed(3)} | ${read!.confidence} | ${seconds} |`)
      expect(recall).toBeGreaterThan(least)
    }
  })
})
