import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PDFiumLibrary } from '@hyzyla/pdfium'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import type { DocumentParser } from '../../subgraphs/knowledge/ports/document-parser.ts'
import { pairsIn, recallOf, wordsIn } from '../support/data/word-recall.ts'

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

/** What PDFium gives, which draws pages for OCR. */
async function readWithPdfium(file: string): Promise<string> {
  const library = await PDFiumLibrary.init()
  const document = await library.loadDocument(readFileSync(new URL(file, CORPUS)))
  try {
    return [...document.pages()].map((page) => page.getText()).join('\n')
  } finally {
    document.destroy()
    library.destroy()
  }
}

/** What poppler gives in its default mode, in the order of reading. Null: it is not on the machine. */
async function readWithPoppler(file: string): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)('pdftotext', [fileURLToPath(new URL(file, CORPUS)), '-'], { maxBuffer: 64 * 1024 * 1024 })
    return stdout
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** The share of a reference's words that a text has, each as often. With `run` 2 its pairs of neighbours, which tell order. */
function measureRecall(reference: string, text: string, run: 1 | 2 = 1): number {
  const [all, found] = [reference, text].map((one) => (run === 1 ? wordsIn(one) : pairsIn(wordsIn(one))))
  return recallOf(all!, found!)
}

/** A row of the printed table: the recall of words and of pairs, ours and that of others. */
async function measureAll(reference: string, file: string, ours: string): Promise<Readonly<Record<string, string>>> {
  const texts = {
    ours,
    'plain pdf.js': await readPlainText(file),
    PDFium: await readWithPdfium(file),
    poppler: await readWithPoppler(file),
  }
  const cells = Object.entries(texts).map(([name, text]) => {
    const [words, pairs] = ([1, 2] as const).map((run) => (text === null ? 0 : measureRecall(reference, text, run)).toFixed(3))
    return [name, text === null ? 'not here' : `${words} ${pairs}`]
  })
  return Object.fromEntries(cells)
}

describe('Words of real PDFs', () => {
  let parser: DocumentParser
  const table: Record<string, Readonly<Record<string, string>>> = {}
  beforeAll(async () => {
    parser = await openDocumentParser({ log: silentLog })
  })
  afterAll(async () => {
    await parser[Symbol.asyncDispose]()
    if (IS_THERE) console.table(table)
  })

  it.runIf(!IS_THERE)('exist', (context) => {
    if (process.env.KIS_REQUIRE_SHARED !== '1') context.skip('the shared folder with the corpus is not beside the project')
    expect.fail('KIS_REQUIRE_SHARED is 1 and ../shared/corpus or ../shared/eval is absent')
  })

  it.runIf(IS_THERE)('are compared with poppler', async (context) => {
    if ((await readWithPoppler(OF_PLAIN[0]!)) === null) context.skip('`pdftotext` of poppler-utils is not on this machine')
  })

  it.runIf(IS_THERE).each(Object.entries(REFERENCES))('are those that %s was printed from', async (file, referenceOf) => {
    const reference = await referenceOf(parser)
    const text = await textOf(parser, file)
    table[file] = await measureAll(reference, file, text)
    expect(measureRecall(reference, text)).toBeGreaterThan(0.99)
  })

  it.runIf(IS_THERE).each(OF_PLAIN)('of %s are those that pdf.js finds', async (file) => {
    const reference = await readPlainText(file)
    const text = await textOf(parser, file)
    table[file] = await measureAll(reference, file, text)
    expect(measureRecall(reference, text)).toBeGreaterThan(0.92)
  })
})
