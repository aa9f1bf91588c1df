import { readCalibration } from '../../../subgraphs/inference/adapters/embedded/read-calibration.ts'
import type { RankedChunk, SearchMode } from '../../../subgraphs/knowledge/domain/search/fuse.ts'
import { createAim } from '../../../subgraphs/knowledge/domain/search/query-vectors.ts'
import { grams, normaliseForEmbedding, queryTerms, words } from '../../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { ChunkIndex } from '../../../subgraphs/knowledge/ports/chunk-index.ts'
import { compareTokens } from '../../../subgraphs/knowledge/use-cases/search/compare-tokens.ts'
import { rankCandidates } from '../../../subgraphs/knowledge/use-cases/search/rank-candidates.ts'
import { inParallel } from '../in-parallel.ts'
import { type EvalData, type EvalEmbeddings, evalEmbeddings, type Language } from './eval-vectors.ts'
import { mean, ndcgAt10 } from './ndcg.ts'

/** The standard deviation of a question's cosines with e5-small-ar-en, from the model's evaluation. */
const SPREAD = 0.03
const MODEL = new URL('../../../models/e5-small-ar-en/', import.meta.url)
/** The number of candidates of each ranking, as in the service. */
const CANDIDATES = 100
/** The number of concurrent searches. */
const PARALLEL = 4
/** The first run embeds 1,464 texts, which takes about a minute. */
export const EMBEDDING_TIMEOUT_MS = 300_000

export type Pool = Language | 'both'
const POOLS = ['ar', 'en', 'both'] as const

/** What a search found for one question. */
export interface EvalResult {
  /** The ids of the paragraphs that answer it, in both languages. */
  readonly right: readonly string[]
  readonly hits: readonly RankedChunk[]
}

interface SearchOptions {
  readonly every?: number
  readonly isSelected?: (paragraphIds: readonly string[]) => boolean
  readonly isUnanswerable?: boolean
}

/** The paragraphs and questions of the benchmark with their vectors. It can fill and search any chunk index. */
export class EvalSearch {
  readonly #data: EvalData
  readonly #chunkEmbeddings: EvalEmbeddings
  readonly #queries: EvalEmbeddings

  private constructor(data: EvalData, chunkEmbeddings: EvalEmbeddings, queries: EvalEmbeddings) {
    this.#data = data
    this.#chunkEmbeddings = chunkEmbeddings
    this.#queries = queries
  }

  static async of(data: EvalData): Promise<EvalSearch> {
    const chunkTexts = data.paragraphs.map(({ text }) => `passage: ${normaliseForEmbedding(text)}`)
    const queries = data.questions.map(({ text }) => `query: ${normaliseForEmbedding(text)}`)
    return new EvalSearch(data, await evalEmbeddings(chunkTexts, 'passage'), await evalEmbeddings(queries, 'query'))
  }

  /** Creates a collection for each language and one for both. Each has the name of its pool. */
  async fill(index: ChunkIndex): Promise<void> {
    for (const pool of POOLS) {
      const members = this.#data.paragraphs
        .map((paragraph, i) => ({
          paragraph,
          vector: this.#chunkEmbeddings.vectors[i]!,
          tokenStates: this.#chunkEmbeddings.tokenStates[i]!,
        }))
        .filter(({ paragraph }) => pool === 'both' || paragraph.lang === pool)
      const chunks = members.map(({ paragraph: { id, lang, text }, vector, tokenStates }, ordinal) => ({
        chunkId: id,
        ordinal,
        text,
        headingPath: [],
        context: '',
        pageStart: null,
        pageEnd: null,
        charStart: 0,
        charEnd: text.length,
        language: lang,
        vector,
        tokenStates,
        words: words(text),
        grams: grams(text),
      }))
      await index.createCollection({ organizationId: 'org_a', collectionId: pool, dimensions: chunks[0]!.vector.length })
      await index.put({ organizationId: 'org_a', collectionId: pool, documentId: 'doc', generation: 'g', attributes: {} }, chunks)
    }
  }

  /** Returns the ids of the ten best paragraphs for each question of a language, or for one of every few. */
  async topTens(index: ChunkIndex, from: Language, pool: Pool, mode: SearchMode, every = 1): Promise<readonly (readonly string[])[]> {
    const results = await this.search(index, from, pool, mode, { every })
    return results.map(({ hits }) => hits.map(({ chunkId }) => chunkId))
  }

  /**
   * Returns the ten best paragraphs for each question of a language, or for one of every few whose answer `isAsked`
   * picks. With `isUnanswerable` the paragraphs that answer it are left out, as if the collection did not have them.
   */
  async search(
    index: ChunkIndex,
    from: Language,
    pool: Pool,
    mode: SearchMode,
    { every = 1, isSelected = () => true, isUnanswerable = false }: SearchOptions = {},
  ): Promise<readonly EvalResult[]> {
    const { signal } = new AbortController()
    const calibration = await readCalibration(MODEL)
    const selected = [...this.#data.questions.entries()]
      .filter(([, { lang, paragraph_ids }]) => lang === from && isSelected(paragraph_ids))
      .filter((_, i) => i % every === 0)
    return inParallel(selected, PARALLEL, async ([i, { text, paragraph_ids: right }]) => {
      const aim = mode === 'lexical' ? null : createAim(this.#queries.vectors[i]!, from, calibration)
      const terms = mode === 'vector' ? { words: [], grams: [] } : queryTerms(text)
      const aimed = { vector: aim?.vector ?? null, anchor: aim?.anchor ?? null }
      const all = await index.search({ collectionId: pool, ...aimed, ...terms, candidates: CANDIDATES, filter: null }, signal)
      const found = isUnanswerable ? all.filter(({ chunkId }) => !right.includes(chunkId)) : all
      const tokenEmbeddings = this.#queries.tokenStates[i]!
      const tokenCloseness = await compareTokens(
        (ids) => index.tokenEmbeddings(pool, ids),
        { tokenEmbeddings, language: from, mode, aim },
        found,
      )
      const ranking = { query: text, language: from, mode, limit: 10, aim, spread: SPREAD, tokenCloseness }
      return { right, hits: await rankCandidates((ids) => index.get(pool, ids), ranking, found) }
    })
  }

  /** Returns the mean nDCG@10 of what `topTens` gives. */
  ndcg(topTens: readonly (readonly string[])[], from: Language, pool: Pool, every = 1): number {
    const present = new Set(this.#data.paragraphs.filter(({ lang }) => pool === 'both' || lang === pool).map(({ id }) => id))
    const selected = this.#data.questions.filter(({ lang }) => lang === from).filter((_, i) => i % every === 0)
    return mean(selected.map(({ paragraph_ids }, i) => ndcgAt10(topTens[i]!, new Set(paragraph_ids.filter((id) => present.has(id))))))
  }
}
