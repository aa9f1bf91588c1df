import { findExactThings, weighExactThings } from '../../domain/search/exact-things.ts'
import { fuse, isOtherLanguage, type RankedChunk, type SearchMode } from '../../domain/search/fuse.ts'
import { findRepeated, isJunk, JUNK_PENALTY } from '../../domain/search/prose.ts'
import type { Aim } from '../../domain/search/query-vectors.ts'
import { findRequiredPhrases, spell } from '../../domain/search/quoted-phrases.ts'
import { weighNames } from '../../domain/search/transliterated-names.ts'
import { findWordPairs } from '../../domain/search/word-pairs.ts'
import type { Language } from '../../domain/text/language.ts'
import type { ChunkCandidate, StoredChunk } from '../../ports/chunk-index.ts'

/** Passages whose texts are read, beyond those of the answer: so many may be junk that leaves its place. */
const READ_BEYOND = 20
/** The best passages of the query's language, which neighbouring words reorder. */
const COMPARED_BY_PAIRS = 5
/** As many as the index gives at once. */
const MAX_READ = 1_000

interface Ranking {
  readonly query: string
  readonly language: Language | null
  readonly mode: SearchMode
  readonly limit: number
  readonly aim: Aim | null
  readonly spread: number | null
  /** How much words count against meaning; absent: 1. */
  readonly lexicalWeight?: number
  /** As `compareTokens` gives it. */
  readonly tokenCloseness?: ReadonlyMap<string, number>
}

/**
 * Ranks the candidates of a search by their figures, and then by what their texts have: quoted phrases are required,
 * exact things lift a passage over those of any language, names those of the other one, neighbouring words reorder those
 * of the query's own, and junk ranks below text. `read` gives the stored chunks.
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
  // What has neither a word nor a 3-gram of the query has none of its exact things.
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
