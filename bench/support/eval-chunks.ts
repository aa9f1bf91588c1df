import { grams, normaliseForEmbedding, words } from '../../subgraphs/knowledge/domain/text/text-analysis.ts'
import type { IndexedChunk, IndexedDocument, Terms } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { type EvalData, evalEmbeddings } from '../../test/support/data/eval-vectors.ts'
import { seeded, wordSource } from './words.ts'

export interface CollectionSize {
  readonly collectionId: string
  readonly chunks: number
  /** Collections with the same seed have the same noise, up to the length of the shorter one. */
  readonly seed: number
  /** Whether the benchmark's chunks come first. */
  readonly hasReal: boolean
}

export interface Question {
  readonly collectionId: string
  /** Plain numbers, because messages between processes carry them. */
  readonly vector: readonly number[]
  readonly text: string
}

export interface Put {
  readonly document: IndexedDocument
  readonly chunks: readonly IndexedChunk[]
}

const CHUNKS_PER_DOCUMENT = 256
const SENTENCES = 20_000
const WORDS_PER_SENTENCE = 26
const SENTENCES_PER_CHUNK = 5
const WORDS_PER_QUESTION = 8
/** Number of shelves, to filter by: one document in ten is on a given shelf. */
const SHELVES = 10
/**
 * How a noise vector is created: a real chunk's vector, moved along this many differences between real ones (with this
 * deviation, so that it keeps the directions of texts), and by this length in a random direction. Among 50,000 the
 * cosines to a question are 0.87 for the nearest, 0.84 for the tenth and 0.69 for the median; among the real chunks
 * alone 0.87, 0.79 and 0.74.
 */
const DIFFERENCES = 8
const ALONG_EACH = 0.19
const IN_ANY_DIRECTION = 0.2

interface Sentence extends Terms {
  readonly text: string
}

/**
 * Collections of any size: the benchmark's real chunks, and noise created from their vectors, with invented texts whose
 * words follow Zipf's law.
 */
export class EvalChunks {
  readonly #data: EvalData
  readonly #chunks: readonly Float32Array[]
  readonly #questions: readonly Float32Array[]
  readonly #sentences: readonly Sentence[]

  private constructor(data: EvalData, vectors: readonly Float32Array[]) {
    this.#data = data
    this.#chunks = vectors.slice(0, data.paragraphs.length)
    this.#questions = vectors.slice(data.paragraphs.length)
    const draw = wordSource(seeded(1))
    this.#sentences = Array.from({ length: SENTENCES }, () => {
      const text = Array.from({ length: WORDS_PER_SENTENCE }, draw).join(' ')
      return { text, words: words(text), grams: grams(text) }
    })
  }

  static async of(data: EvalData): Promise<EvalChunks> {
    const chunkTexts = data.paragraphs.map(({ text }) => `passage: ${normaliseForEmbedding(text)}`)
    const questions = data.questions.map(({ text }) => `query: ${normaliseForEmbedding(text)}`)
    const [{ vectors: chunkVectors }, { vectors: queryVectors }] = [
      await evalEmbeddings(chunkTexts, 'passage'),
      await evalEmbeddings(questions, 'query'),
    ]
    return new EvalChunks(data, [...chunkVectors, ...queryVectors])
  }

  get dimensions(): number {
    return this.#chunks[0]!.length
  }

  /** Yields the same documents each time. */
  *documents({ collectionId, chunks, seed, hasReal }: CollectionSize): Generator<Put> {
    const random = seeded(seed)
    for (let from = 0; from < chunks; from += CHUNKS_PER_DOCUMENT) {
      const number = from / CHUNKS_PER_DOCUMENT
      yield {
        document: {
          organizationId: 'org',
          collectionId,
          documentId: `doc-${number}`,
          generation: 'g',
          attributes: { 'metadata.shelf': number % SHELVES },
        },
        chunks: Array.from({ length: Math.min(CHUNKS_PER_DOCUMENT, chunks - from) }, (_, i) => this.#chunk(from + i, hasReal, random)),
      }
    }
  }

  /** Returns vectors of real questions. As people do, their texts use words of one of the chunks. */
  questions(collectionIds: readonly string[], count: number): readonly Question[] {
    const random = seeded(count)
    return Array.from({ length: count }, (_, i) => {
      const from = this.#sentences[Math.floor(random() * SENTENCES)]!.text.split(' ')
      const text = Array.from({ length: WORDS_PER_QUESTION }, () => from[Math.floor(random() * from.length)]).join(' ')
      // Spread over the whole set, which has one language first and then the other.
      const vector = this.#questions[Math.floor((i * this.#questions.length) / count)]!
      return { collectionId: collectionIds[i % collectionIds.length]!, vector: [...vector], text }
    })
  }

  #chunk(ordinal: number, hasReal: boolean, random: () => number): IndexedChunk {
    const real = hasReal ? this.#data.paragraphs[ordinal] : undefined
    const { text, ...terms } = real ? { text: real.text, words: words(real.text), grams: grams(real.text) } : this.#noiseText(random)
    return {
      chunkId: `chunk-${ordinal}`,
      ordinal,
      text,
      headingPath: [],
      context: '',
      pageStart: null,
      pageEnd: null,
      charStart: 0,
      charEnd: text.length,
      language: real?.lang ?? (ordinal % 2 ? 'ar' : 'en'),
      vector: real ? this.#chunks[ordinal]! : this.#noiseVector(random),
      ...terms,
    }
  }

  /** Creates a text of noise. Each word is one term, so the terms of the sentences are those of the text. */
  #noiseText(random: () => number): Sentence {
    const of = Array.from({ length: SENTENCES_PER_CHUNK }, () => this.#sentences[Math.floor(random() * SENTENCES)]!)
    return {
      text: of.map(({ text }) => text).join(' '),
      words: of.flatMap(({ words }) => words),
      grams: of.flatMap(({ grams }) => grams),
    }
  }

  #noiseVector(random: () => number): Float32Array {
    const any = () => this.#chunks[Math.floor(random() * this.#chunks.length)]!
    // The sum of three uniform numbers is nearly normal, with deviation 1/2.
    const normal = () => 2 * (random() + random() + random() - 1.5)
    const base = any()
    const inAnyDirection = IN_ANY_DIRECTION / Math.sqrt(base.length)
    const raw = base.map((x) => x + inAnyDirection * normal())
    for (let n = 0; n < DIFFERENCES; n++) {
      const [from, to, by] = [any(), any(), ALONG_EACH * normal()]
      for (const [i, x] of to.entries()) raw[i]! += by * (x - from[i]!)
    }
    const length = Math.sqrt(raw.reduce((sum, x) => sum + x * x, 0))
    return raw.map((x) => x / length)
  }
}
