import { grams, queryTerms, words } from '../../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type {
  ChunkCandidate,
  ChunkIndex,
  ChunkQuery,
  IndexedChunk,
  IndexedDocument,
} from '../../../subgraphs/knowledge/ports/chunk-index.ts'

export const DIMENSIONS = 24

export const TEXTS = [
  'The old library keeps the letters of the sultan in a cedar chest',
  'Letters from the harbour arrive on Tuesdays and are read aloud',
  'تحفظ المكتبة القديمة رسائل السلطان في صندوق من خشب الأرز',
  'وصلت السفينة إلى الميناء محملة بالتوابل والحرير في عام 1453',
  'Spices and silk came with the ship to the harbour in 1453',
  'مدرسة الطب في المدينة بنيت قبل ٣٠٠ عام',
] as const

export const COLLECTION = `col_${'a1'.repeat(16)}`
export const OTHER = `col_${'b2'.repeat(16)}`

export const ATTRIBUTES = {
  doc_1: {
    file_name: 'a b.pdf',
    media_type: 'application/pdf',
    language: 'en',
    created_at: 1_000,
    'metadata.year': 2020,
    'metadata.draft': true,
  },
  doc_2: {
    file_name: 'كتاب.txt',
    media_type: 'text/plain',
    language: null,
    created_at: 2_000,
    'metadata.year': '2020',
    'metadata."q': 'x',
  },
} as const

export function createDocument(documentId: string, generation = 'g1'): IndexedDocument {
  return { organizationId: 'org_a', collectionId: COLLECTION, documentId, generation, attributes: {} }
}

export function chunkId(documentId: string, generation: string, ordinal: number): string {
  return `${documentId}-${generation}-${ordinal}`
}

/** A chunk of a text, with the text's terms and a vector of zeros if `more` names none. */
export function plainChunk(chunkId: string, ordinal: number, text: string, more: Partial<IndexedChunk> = {}): IndexedChunk {
  return {
    ...{ chunkId, ordinal, text, headingPath: [], context: '', pageStart: null, pageEnd: null, charStart: 0, charEnd: text.length },
    ...{ language: 'en', vector: new Float32Array(DIMENSIONS), words: words(text), grams: grams(text), ...more },
  }
}

export function createChunk(text: string, ordinal: number, documentId = 'doc_1', generation = 'g1'): IndexedChunk {
  return plainChunk(chunkId(documentId, generation, ordinal), ordinal, text, {
    charStart: ordinal * 10,
    charEnd: ordinal * 10 + text.length,
    language: /[\u0621-\u064a]/.test(text) ? 'ar' : 'en',
    vector: unitVector(ordinal),
    tokenStates: createTokenStates(ordinal),
  })
}

/** Returns the bytes of 1 to 4 token states, which depend on the seed only, or null for every third seed. */
export function createTokenStates(seed: number): Int8Array | null {
  if (seed % 3 === 2) return null
  return Int8Array.from({ length: 1 + 16 * ((seed % 4) + 1) }, (_, i) => ((seed * 31 + i * 7) % 255) - 127)
}

/** Returns a unit vector that depends on the seed only. mulberry32 generates the components. */
export function unitVector(seed: number, dimensions = DIMENSIONS): Float32Array {
  let state = (seed + 1) * 0x9e3779b9
  const raw = Float32Array.from({ length: dimensions }, () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 31 - 1
  })
  const length = Math.sqrt(dot(raw, raw))
  return raw.map((x) => x / length)
}

export function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i]!, 0)
}

export function listIds(found: readonly { readonly chunkId: string }[]): string[] {
  return found.map(({ chunkId }) => chunkId).sort()
}

export function withWords(found: readonly ChunkCandidate[]): readonly ChunkCandidate[] {
  return found.filter(({ wordCoverage }) => wordCoverage > 0)
}

/** Sorts and rounds candidates, because adapters may differ in order and in the last digits. */
export function sorted(found: readonly ChunkCandidate[]): readonly unknown[] {
  return found
    .toSorted((a, b) => (a.chunkId < b.chunkId ? -1 : 1))
    .map((c) => ({
      ...c,
      cosine: c.cosine === null ? null : c.cosine.toFixed(3),
      wordCoverage: c.wordCoverage.toFixed(3),
      gramCoverage: c.gramCoverage.toFixed(3),
    }))
}

/** An index with one collection, and the operations of a test on it. */
export interface OpenedCollection extends AsyncDisposable {
  readonly index: ChunkIndex
  search(query: Partial<ChunkQuery>): Promise<readonly ChunkCandidate[]>
  searchText(text: string, query?: Partial<ChunkQuery>): Promise<readonly ChunkCandidate[]>
}

/** Opens an index with one collection. `candidates` is the default for searches. */
export async function openCollection(open: () => Promise<ChunkIndex>, candidates: number): Promise<OpenedCollection> {
  const index = await open()
  await index.createCollection({ organizationId: 'org_a', collectionId: COLLECTION, dimensions: DIMENSIONS })
  const defaults = { collectionId: COLLECTION, vector: null, words: [], grams: [], candidates, filter: null }
  const search = (query: Partial<ChunkQuery>) => index.search({ ...defaults, ...query }, new AbortController().signal)
  return {
    index,
    search,
    searchText: (text, query = {}) => search({ ...queryTerms(text), ...query }),
    [Symbol.asyncDispose]: () => index[Symbol.asyncDispose](),
  }
}

/** The port's formula, in the plainest way: the share of `query` that each text covers. */
export function coverage(texts: readonly string[], query: string, analyse: (text: string) => readonly string[]): number[] {
  const documents = texts.map(analyse)
  const average = documents.reduce((sum, d) => sum + d.length, 0) / documents.length
  const terms = [...new Set(analyse(query))].map((term) => {
    const df = documents.filter((d) => d.includes(term)).length
    return { term, idf: Math.log(1 + (documents.length - df + 0.5) / (df + 0.5)) }
  })
  const ceiling = terms.reduce((sum, { idf }) => sum + idf * 2.2, 0)
  return documents.map((d) => {
    const sum = terms.reduce((total, { term, idf }) => {
      const tf = d.filter((t) => t === term).length
      return total + (idf * tf * 2.2) / (tf + 1.2 * (0.25 + (0.75 * d.length) / average))
    }, 0)
    return ceiling === 0 ? 0 : sum / ceiling
  })
}
