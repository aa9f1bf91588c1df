import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { readCalibration } from '../../subgraphs/inference/adapters/embedded/read-calibration.ts'
import { openDocumentParser } from '../../subgraphs/knowledge/adapters/parser/open-document-parser.ts'
import { openSqliteChunkIndex } from '../../subgraphs/knowledge/adapters/sqlite/chunk-index.ts'
import { chunkDocument, type DocumentChunk, toEmbeddingText } from '../../subgraphs/knowledge/domain/chunking/chunk-document.ts'
import { createAim } from '../../subgraphs/knowledge/domain/search/query-vectors.ts'
import type { Relevance } from '../../subgraphs/knowledge/domain/search/relevance.ts'
import { grams, hasWords, normaliseForEmbedding, queryTerms, words } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex, IndexedChunk } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { compareTokens } from '../../subgraphs/knowledge/use-cases/search/compare-tokens.ts'
import { rankCandidates } from '../../subgraphs/knowledge/use-cases/search/rank-candidates.ts'
import { EMBEDDING_TIMEOUT_MS } from '../support/data/eval-search.ts'
import { type EvalEmbeddings, evalEmbeddings } from '../support/data/eval-vectors.ts'

const CORPUS = new URL('../../../shared/corpus/', import.meta.url)
const MODEL = new URL('../../models/e5-small-ar-en/', import.meta.url)
const IS_WHOLE = process.env.KIS_SOAK === '1'
/** Half of the passages, which take most of the time to embed. Its questions are asked with `KIS_SOAK=1` only. */
const LEFT_OUT = 'en-developers-reference.pdf'
const title = 'Search over long documents'

type Language = 'ar' | 'en'

interface Question {
  readonly question: string
  readonly language: Language
  readonly document: Language
  readonly file: string
  readonly phrase: string
  readonly half: 'dev' | 'held'
}

interface Rank {
  readonly direction: string
  /** Of the first passage with the phrase; infinite when it is not among ten. */
  readonly rank: number
}

/** The form in which the corpus compares: its README, "Comparing". */
function comparable(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06ed]/g, '')
    .replaceAll('ٱ', 'ا')
    .replace(/\s+/g, ' ')
}

describe.skipIf(!existsSync(CORPUS))(existsSync(CORPUS) ? title : `${title} (skipped: ../shared/corpus is not beside this project)`, () => {
  let folder: string
  let index: ChunkIndex
  const ranks: Rank[] = []
  const judged: { readonly relevance: Relevance | null; readonly isRight: boolean }[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kis-long-'))
    index = await openSqliteChunkIndex({ file: join(folder, 'index.sqlite'), log: silentLog })
    const chunks = await readCorpus()
    const evalQuestions = readQuestions()
    const chunkTexts = chunks.map((chunk) => `passage: ${embedded(chunk)}`)
    const queries = evalQuestions.map(({ question }) => `query: ${normaliseForEmbedding(question)}`)
    await fill(index, chunks, await evalEmbeddings(chunkTexts, 'passage'))
    const queryEmbeddings = await evalEmbeddings(queries, 'query')
    const calibration = await readCalibration(MODEL)
    for (const [i, { question: query, language, document, file, phrase }] of evalQuestions.entries()) {
      const aim = createAim(queryEmbeddings.vectors[i]!, language, calibration)
      const aimed = { collectionId: 'all', vector: aim.vector, anchor: aim.anchor, candidates: 100, filter: null }
      const candidates = await index.search({ ...aimed, ...queryTerms(query) }, new AbortController().signal)
      const compared = { tokenEmbeddings: queryEmbeddings.tokenStates[i]!, language, mode: 'hybrid', aim } as const
      const tokenCloseness = await compareTokens((ids) => index.tokenEmbeddings('all', ids), compared, candidates)
      const ranking = { query, language, mode: 'hybrid', limit: 10, aim, spread: 0.03, tokenCloseness } as const
      const hits = await rankCandidates((ids) => index.get('all', ids), ranking, candidates)
      const isRight = (id: string) => {
        const chunk = chunks[Number(id)]!
        return chunk.file.startsWith(file) && comparable(chunk.text).includes(comparable(phrase))
      }
      const position = hits.findIndex(({ chunkId }) => isRight(chunkId))
      judged.push(...hits.map(({ chunkId, relevance }) => ({ relevance, isRight: isRight(chunkId) })))
      ranks.push({ direction: `${language}→${document}`, rank: position < 0 ? Number.POSITIVE_INFINITY : position + 1 })
    }
    console.table(Object.fromEntries(['all', 'ar→ar', 'en→en', 'ar→en', 'en→ar'].map((direction) => [direction, describeRanks(direction)])))
  }, EMBEDDING_TIMEOUT_MS)

  afterAll(async () => {
    await index?.[Symbol.asyncDispose]()
    if (folder) await rm(folder, { recursive: true, force: true })
  })

  function describeRanks(direction: string) {
    const of = ranks.filter((each) => direction === 'all' || each.direction === direction)
    const within = (limit: number) => of.filter(({ rank }) => rank <= limit).length / of.length
    return { first: within(1), three: within(3), ten: within(10), mrr: of.reduce((sum, { rank }) => sum + 1 / rank, 0) / of.length }
  }

  it.each([
    ['all', 0.82],
    ['ar→ar', 0.95],
    ['en→en', 0.88],
    ['ar→en', 0.62],
    ['en→ar', 0.72],
  ])('has the answer in the first three for %s in at least %f', (direction, target) => {
    expect(describeRanks(direction).three).toBeGreaterThanOrEqual(target)
  })

  it('strong hits mostly answer, and weak hits hardly ever do', () => {
    const shareOf = (relevance: Relevance) => {
      const of = judged.filter((each) => each.relevance === relevance)
      return of.filter(({ isRight }) => isRight).length / of.length
    }
    console.info({ strong: shareOf('strong'), likely: shareOf('likely'), weak: shareOf('weak') })
    expect(shareOf('strong')).toBeGreaterThan(0.65)
    expect(shareOf('likely')).toBeGreaterThan(0.25)
    expect(shareOf('weak')).toBeLessThan(0.08)
  })
})

function readQuestions(): readonly Question[] {
  const { questions } = JSON.parse(readFileSync(new URL('../eval/long-documents.json', import.meta.url), 'utf8')) as {
    readonly questions: readonly Question[]
  }
  return questions.filter(({ half, file }) => half === 'dev' && (IS_WHOLE || file !== LEFT_OUT))
}

type CorpusChunk = DocumentChunk & { readonly file: string }

async function readCorpus(): Promise<readonly CorpusChunk[]> {
  const json = (name: string) => JSON.parse(readFileSync(new URL(name, MODEL), 'utf8')) as object
  const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'))
  const manifest = JSON.parse(readFileSync(new URL('manifest.json', CORPUS), 'utf8')) as {
    readonly file: string
    readonly expect: { readonly status: string }
  }[]
  await using parser = await openDocumentParser({ log: silentLog })
  const { signal } = new AbortController()
  const chunks: CorpusChunk[] = []
  for (const { file, expect: expected } of manifest) {
    if (expected.status !== 'ready' || (!IS_WHOLE && file === LEFT_OUT)) continue
    const document = await parser.parse(readFileSync(new URL(file, CORPUS)), file, signal)
    const countTokens = async (texts: readonly string[]) => texts.map((text) => tokenizer.encode(text).ids.length - 2)
    const cut = await chunkDocument(document, { countTokens, overheadTokens: 6, signal })
    chunks.push(...cut.filter(({ text }) => hasWords(text)).map((chunk) => ({ ...chunk, file })))
  }
  return chunks
}

function embedded(chunk: CorpusChunk): string {
  return normaliseForEmbedding(toEmbeddingText(chunk))
}

async function fill(index: ChunkIndex, chunks: readonly CorpusChunk[], { vectors, tokenStates }: EvalEmbeddings): Promise<void> {
  await index.createCollection({ organizationId: 'org_a', collectionId: 'all', dimensions: vectors[0]!.length })
  const indexed = chunks.map((chunk, ordinal): IndexedChunk => {
    const text = embedded(chunk)
    const numbers = { vector: vectors[ordinal]!, tokenStates: tokenStates[ordinal]! }
    return { ...chunk, chunkId: String(ordinal), ordinal, ...numbers, words: words(text), grams: grams(text) }
  })
  for (let at = 0; at < indexed.length; at += 256) {
    const document = { organizationId: 'org_a', collectionId: 'all', documentId: 'doc', generation: 'g', attributes: {} }
    await index.put(document, indexed.slice(at, at + 256))
  }
}
