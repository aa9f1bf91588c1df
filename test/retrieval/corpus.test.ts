import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { type DocumentParser, type ParsedDocument, ParseFailure } from '../../subgraphs/knowledge/ports/document-parser.ts'

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

describe('the shared corpus', () => {
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

  it.runIf(files.length === 0)('is there', (context) => {
    if (!REQUIRED) context.skip('the shared folder with the corpus is not beside the project')
    expect.fail('KIS_REQUIRE_SHARED is 1 and ../shared/corpus is absent')
  })

  it.each(files.map((file) => [file.file, file] as const))('reads %s as its manifest says', async (name, { kind, expect: expected }) => {
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
  })
})
