import { findExactThings, weighExactThings } from '../../domain/search/exact-things.ts'
import { fuse, isOtherLanguage, type RankedChunk, type SearchMode } from '../../domain/search/fuse.ts'
import { findRepeated, isJunk, JUNK_PENALTY } from '../../domain/search/prose.ts'
import type { Aim } from '../../domain/search/query-vectors.ts'
import { findRequiredPhrases, spell } from '../../domain/search/quoted-phrases.ts'
import { weighNames } from '../../domain/search/transliterated-names.ts'
import { findWordPairs } from '../../domain/search/word-pairs.ts'
import type { Language } from '../../domain/text/language.ts'
import type { ChunkCandidate, StoredChunk } from '../../ports/chunk-index.ts'

/** Additional chunks whose texts are read, because junk among the results loses its rank. */
const READ_BEYOND = 20
/** Number of the best chunks in the query's language that word pairs reorder. */
const COMPARED_BY_PAIRS = 5
/** The index port's limit. */
const MAX_READ = 1_000

interface Ranking {
  readonly query: string
  readonly language: Language | null
  readonly mode: SearchMode
  readonly limit: number
  readonly aim: Aim | null
  readonly spread: number | null
  /** Weight of lexical evidence relative to vectors. Default: 1. */
  readonly lexicalWeight?: number
  /** The result of `compareTokens`. */
  readonly tokenCloseness?: ReadonlyMap<string, number>
}

/**
 * Ranks the candidates of a search by their figures, then by their texts. Quoted phrases are required. Exact things
 * raise chunks of any language, and names raise those of the other language. Word pairs reorder chunks of the query's
 * language. Junk ranks below text. `read` returns the stored chunks.
 */
export async function rankCandidates(
  read: (chunkIds: readonly string[]) => Promise<readonly StoredChunk[]>,
  { query, language, ...options }: Ranking,
  candidates: readonly ChunkCandidate[],
): Promise<readonly RankedChunk[]> {
  const phrases = findRequiredPhrases(query)
  const things = options.mode === 'hybrid' ? findExactThings(query, language) : []
  const all = { ...options, language, limit: candidates.length }
  const byFigures = fuse(candidates, all)
  // A chunk with no word or 3-gram of the query has none of its exact things.
  const isRead = ({ lexicalRank }: RankedChunk, index: number) =>
    index < options.limit + READ_BEYOND || ((things.length > 0 || phrases.length > 0) && lexicalRank !== null)
  const ids = byFigures.filter(isRead).map(({ chunkId }) => chunkId)
  const chunks = await read(ids.slice(0, MAX_READ))

  const texts = chunks.map(withHeadings)
  const evidence = new Map(weighExactThings(things, texts, language))
  const add = (chunkId: string, weight: number) => evidence.set(chunkId, (evidence.get(chunkId) ?? 0) + weight)
  for (const [chunkId, weight] of options.mode === 'hybrid' ? weighNames(query, texts, language) : []) add(chunkId, weight)
  const sharing = new Set(byFigures.filter(({ lexicalRank }) => lexicalRank !== null).map(({ chunkId }) => chunkId))
  const own = texts.filter((text) => sharing.has(text.chunkId) && !isOtherLanguage(text, language)).slice(0, COMPARED_BY_PAIRS)
  const wordPairs = options.mode === 'hybrid' ? findWordPairs(query, own) : new Map<string, number>()
  const repeated = findRepeated(chunks.map(({ text }) => text))
  for (const [at, { chunkId, text }] of chunks.entries()) if (repeated.has(at) || isJunk(text)) add(chunkId, -JUNK_PENALTY)
  const having = phrases.length > 0 ? new Set(chunks.filter((chunk) => hasAll(chunk, phrases)).map(({ chunkId }) => chunkId)) : null
  const matching = having ? candidates.filter(({ chunkId }) => having.has(chunkId)) : candidates
  return fuse(matching, { ...all, evidence, wordPairs, limit: options.limit })
}

function withHeadings({ chunkId, language, text, headingPath }: StoredChunk) {
  return { chunkId, language, text: [...headingPath, text].join('\n') }
}

function hasAll(chunk: StoredChunk, phrases: readonly string[]): boolean {
  const text = spell(withHeadings(chunk).text)
  return phrases.every((phrase) => text.includes(phrase))
}
