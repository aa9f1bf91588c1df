import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import type { DocumentParser } from '../../subgraphs/knowledge/ports/document-parser.ts'
import { recallOf, wordsIn } from '../support/data/word-recall.ts'

const CORPUS = new URL('../../../shared/corpus/', import.meta.url)
const XQUAD = new URL('../../../shared/eval/xquad-dev.json', import.meta.url)
const IS_THERE = existsSync(CORPUS) && existsSync(XQUAD)

/** The text that a file was printed from. */
type Reference = (parser: DocumentParser) => Promise<string>

const REFERENCES: Readonly<Record<string, Reference>> = {
  'ar-un-adolescents.pdf': (parser) => textOf(parser, 'ar-un-adolescents.docx'),
  'ar-xquad-report.pdf': async () => {
    const { paragraphs } = JSON.parse(readFileSync(XQUAD, 'utf8')) as { paragraphs: readonly { id: string; text: string }[] }
    return paragraphs
      .filter(({ id }) => /^ar-1[0246]-/.test(id))
      .map(({ text }) => text)
      .join('\n')
  },
}
/** Files whose letters pdf.js itself gives in order: what it finds must be found, but for headers and hyphens. */
const OF_PLAIN = ['en-developers-reference.pdf', 'en-federal-register-columns.pdf', 'en-graduates-tables.pdf']

async function textOf(parser: DocumentParser, file: string): Promise<string> {
  return (await parser.parse(readFileSync(new URL(file, CORPUS)), file, new AbortController().signal)).text
}

/** What pdf.js gives by itself. */
async function readPlainText(file: string): Promise<string> {
  const { getDocument } = await import('pdfjs-dist/legacy/build/pdf.mjs')
  const cMapUrl = new URL('../../cmaps/', import.meta.resolve('pdfjs-dist/legacy/build/pdf.mjs')).pathname
  const pdf = await getDocument({ data: new Uint8Array(readFileSync(new URL(file, CORPUS))), verbosity: 0, cMapUrl, cMapPacked: true })
    .promise
  const parts: string[] = []
  for (let page = 1; page <= pdf.numPages; page += 1) {
    for (const item of (await (await pdf.getPage(page)).getTextContent()).items)
      if ('str' in item) parts.push(item.str, item.hasEOL ? '\n' : '')
    parts.push('\n')
  }
  return parts.join('')
}

describe('words of real PDFs', () => {
  let parser: DocumentParser
  const table: Record<string, { readonly ours: string; readonly 'plain pdf.js': string }> = {}
  beforeAll(async () => {
    parser = await openDocumentParser({ log: silentLog })
  })
  afterAll(async () => {
    await parser[Symbol.asyncDispose]()
    if (IS_THERE) console.table(table)
  })

  it.runIf(!IS_THERE)('are there', (context) => {
    if (process.env.KIS_REQUIRE_SHARED !== '1') context.skip('the shared folder with the corpus is not beside the project')
    expect.fail('KIS_REQUIRE_SHARED is 1 and ../shared/corpus or ../shared/eval is absent')
  })

  it.runIf(IS_THERE).each(Object.entries(REFERENCES))('are those that %s was printed from', async (file, referenceOf) => {
    const reference = await referenceOf(parser)
    const recall = recallOf(wordsIn(reference), wordsIn(await textOf(parser, file)))
    table[file] = { ours: recall.toFixed(4), 'plain pdf.js': recallOf(wordsIn(reference), wordsIn(await readPlainText(file))).toFixed(4) }
    expect(recall).toBeGreaterThan(0.99)
  })

  it.runIf(IS_THERE).each(OF_PLAIN)('of %s are those that pdf.js finds', async (file) => {
    const recall = recallOf(wordsIn(await readPlainText(file)), wordsIn(await textOf(parser, file)))
    table[file] = { ours: recall.toFixed(4), 'plain pdf.js': '1' }
    expect(recall).toBeGreaterThan(0.92)
  })
})
