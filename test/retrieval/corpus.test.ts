import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { chunkDocument } from '../../subgraphs/knowledge/domain/chunking/chunk-document.ts'
import { type DocumentParser, type ParsedDocument, ParseFailure } from '../../subgraphs/knowledge/ports/document-parser.ts'
import { countWords, expectChunkInvariants } from '../support/chunk-invariants.ts'

const CORPUS = new URL('../../../shared/corpus/', import.meta.url)
const REQUIRED = process.env.KIS_REQUIRE_SHARED === '1'

interface Verdict {
  readonly status: 'ready' | 'failed'
  readonly reason?: string
}

interface CorpusFile {
  readonly file: string
  readonly kind: string
  readonly expect: Verdict & {
    readonly also_accepted?: readonly Verdict[]
    readonly must_contain: readonly string[]
    readonly hard_contain?: readonly string[]
    readonly must_not_contain?: readonly string[]
    readonly questions: readonly { readonly answer_phrase: string }[]
  }
}

/** Documents of Word 97 are read since the corpus was made; it takes them for archives that are none. */
const READ_SINCE = 'doc'

/** The form in which the corpus compares: its README, "Comparing". */
function comparable(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06ed]/g, '')
    .replaceAll('ٱ', 'ا')
    .replace(/\s+/g, ' ')
}

function corpusFiles(): readonly CorpusFile[] {
  const manifest = new URL('manifest.json', CORPUS)
  if (!existsSync(manifest)) return []
  return JSON.parse(readFileSync(manifest, 'utf8')) as CorpusFile[]
}

const files = corpusFiles()

/** As the service cuts, and so small that most sentences are cut. */
const CAPS = [480, 24]

async function expectChunks(document: ParsedDocument): Promise<void> {
  const countTokens = async (texts: readonly string[]) => texts.map(countWords)
  for (const capTokens of CAPS) {
    const signal = new AbortController().signal
    const chunks = await chunkDocument(document, { countTokens, capTokens, targetTokens: capTokens / 2, signal })
    expectChunkInvariants(document, chunks, capTokens)
  }
}

/** Each line is in the text of its page and on the page, and the lines have all of the text but what is slanted. */
function expectBoxes({ mediaType, text, blocks, layout, pageCount }: ParsedDocument): void {
  if (mediaType !== 'application/pdf') {
    expect(layout).toBeUndefined()
    return
  }
  const { pages, lines } = layout!
  const sizes = new Map(pages.map((size) => [size.page, size]))
  let last = 0
  let block = 0
  let placed = 0
  const faults = lines.filter(({ page, charStart, charEnd, x, y, width, height }) => {
    while (blocks[block]!.charEnd <= charStart) block += 1
    const size = sizes.get(page)!
    const isInOrder = charStart >= last && charEnd <= blocks[block]!.charEnd && blocks[block]!.page === page && page <= pageCount!
    const isOnPage = x >= 0 && y >= 0 && width > 0 && height > 0 && x + width <= size.width + 0.1 && y + height <= size.height + 0.1
    last = charEnd
    placed += text.slice(charStart, charEnd).replace(/\s/g, '').length
    return !isInOrder || !isOnPage
  })
  expect(faults).toEqual([])
  expect(placed / text.replace(/\s/g, '').length).toBeGreaterThan(0.97)
}

describe('Shared corpus', () => {
  let parser: DocumentParser
  beforeAll(async () => {
    parser = await openDocumentParser({ log: silentLog })
  })
  afterAll(() => parser[Symbol.asyncDispose]())

  async function judge(file: string): Promise<{ readonly verdict: Verdict; readonly document?: ParsedDocument }> {
    try {
      const document = await parser.parse(readFileSync(new URL(file, CORPUS)), file, new AbortController().signal)
      return { verdict: { status: 'ready' }, document }
    } catch (error) {
      if (error instanceof ParseFailure) return { verdict: { status: 'failed', reason: error.code } }
      throw error
    }
  }

  it.runIf(files.length === 0)('exists', (context) => {
    if (!REQUIRED) context.skip('the shared folder with the corpus is not beside the project')
    expect.fail('KIS_REQUIRE_SHARED is 1 and ../shared/corpus is absent')
  })

  it.each(files.map((file) => [file.file, file] as const))(
    'reads %s as its manifest says, and splits it into correct chunks',
    async (name, { kind, expect: expected }) => {
      const { verdict, document } = await judge(name)
      const { status, reason, also_accepted: others = [] } = expected
      const expectedVerdict = kind === READ_SINCE ? { status: 'ready' } : { status, ...(reason !== undefined && { reason }) }
      expect([expectedVerdict, ...others]).toContainEqual(verdict)
      if (!document) return
      const text = comparable(document.text)
      const phrases = [
        ...expected.must_contain,
        ...(expected.hard_contain ?? []),
        ...expected.questions.map((question) => question.answer_phrase),
      ]
      expect(phrases.filter((phrase) => !text.includes(comparable(phrase)))).toEqual([])
      for (const phrase of expected.must_not_contain ?? []) expect(document.text).not.toContain(phrase)
      await expectChunks(document)
      expectBoxes(document)
    },
  )
})
