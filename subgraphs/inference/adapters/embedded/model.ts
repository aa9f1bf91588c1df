import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { NETWORK_FILE } from './model-files.ts'
import { type Language, MEAN_OF, type Purpose, toTokenEmbeddings, WIDTH } from './token-embeddings.ts'
import { TRAITS } from './tokenizer/unigram.ts'
import { WordTokenizer } from './tokenizer/word-tokenizer.ts'
import { END, PAD, SPECIAL_TOKENS, START } from './tokens.ts'

/**
 * The embedding without the direction that separates Arabic from English, so that one index may contain both languages.
 */
const VECTORS = 'neutral_embedding'
const TOKEN_EMBEDDINGS = 'token_embeddings'

/** A text with the first numbers of the vector that the model must return for it. */
interface Reference {
  readonly tolerance: number
  readonly texts: readonly {
    readonly text: string
    readonly input_ids: readonly number[]
    readonly neutral_embedding_first8: readonly number[]
  }[]
}

/** What the network returns for the texts of one call. */
export interface Embedded {
  /** One vector for each text, of norm 1, concatenated. */
  readonly vectors: Float32Array
  /** The token embeddings of each text. Empty unless requested. */
  readonly tokenEmbeddings: readonly Int8Array[]
}

/** The tokenizer and the network, in the thread that loaded them. */
export class Model {
  readonly tokenizer: WordTokenizer
  readonly #network: InferenceSession

  private constructor(tokenizer: WordTokenizer, network: InferenceSession) {
    this.tokenizer = tokenizer
    this.#network = network
  }

  /**
   * Loads the model, and embeds a text with a known vector, to detect a corrupted file or a runtime that computes
   * wrongly.
   * @throws {Error} the files of the folder are missing or corrupted
   */
  static async load(directory: URL): Promise<Model> {
    const tokenizer = await WordTokenizer.load(directory)
    const network = await InferenceSession.create(fileURLToPath(new URL(NETWORK_FILE, directory)), {
      intraOpNumThreads: Math.min(2, availableParallelism()),
      // Waiting threads sleep. By default they spin, and a text takes ten times as long on a busy machine.
      extra: { session: { intra_op: { allow_spinning: '0' } } },
      // Without the arena, memory for the largest batch ever is not retained. The time is the same within 5 %.
      enableCpuMemArena: false,
      enableMemPattern: false,
    })
    const model = new Model(tokenizer, network)
    await model.#check(directory)
    return model
  }

  async #check(directory: URL): Promise<void> {
    const { tolerance, texts } = JSON.parse(await readFile(new URL('reference.json', directory), 'utf8')) as Reference
    const { text, input_ids: ids, neutral_embedding_first8: expected } = texts[0]!
    const tokens = this.tokenizer.tokens(text)
    if ([START, ...tokens, END].join() !== ids.join()) throw new Error('the tokenizer does not return the reference tokens')
    const { vectors } = await this.embed([tokens], null)
    if (!expected.every((value, index) => Math.abs(value - vectors[index]!) <= tolerance))
      throw new Error('the model does not return the reference vector')
  }

  /**
   * Embeds texts, given as their tokens without special tokens. They are padded to the longest; a vector does not
   * depend on the other texts of its batch. `tokenEmbeddingsFor` requests token embeddings, of texts for this purpose.
   */
  async embed(texts: readonly (readonly number[])[], tokenEmbeddingsFor: Purpose | null): Promise<Embedded> {
    const width = Math.max(...texts.map(({ length }) => length)) + SPECIAL_TOKENS
    const ids = new BigInt64Array(texts.length * width).fill(BigInt(PAD))
    const mask = new BigInt64Array(ids.length)
    for (const [row, tokens] of texts.entries()) {
      ids.set(BigInt64Array.from([START, ...tokens, END], BigInt), row * width)
      mask.fill(1n, row * width, row * width + tokens.length + SPECIAL_TOKENS)
    }
    const purpose = tokenEmbeddingsFor ?? 'query'
    const means = BigInt64Array.from(texts, (tokens) => MEAN_OF[purpose][this.#languageOf(tokens)])
    const feeds = {
      input_ids: new Tensor('int64', ids, [texts.length, width]),
      attention_mask: new Tensor('int64', mask, [texts.length, width]),
      token_mean: new Tensor('int64', means, [texts.length]),
    }
    const outputs = await this.#network.run(feeds, tokenEmbeddingsFor ? [VECTORS, TOKEN_EMBEDDINGS] : [VECTORS])
    const vectors = outputs[VECTORS]!.data as Float32Array
    if (!tokenEmbeddingsFor) return { vectors, tokenEmbeddings: [] }
    const embeddings = outputs[TOKEN_EMBEDDINGS]!.data as Float32Array
    const tokenEmbeddings = texts.map((tokens, row) => {
      const own = embeddings.subarray((row * width + 1) * WIDTH, (row * width + 1 + tokens.length) * WIDTH)
      return toTokenEmbeddings(own, tokenEmbeddingsFor, (position) => this.#has(tokens[position]!, TRAITS.word))
    })
    return { vectors, tokenEmbeddings }
  }

  /** The language of most letters of the text. */
  #languageOf(tokens: readonly number[]): Language {
    let balance = 0
    for (const token of tokens) balance += Number(this.#has(token, TRAITS.arabic)) - Number(this.#has(token, TRAITS.latin))
    return balance >= 0 ? 'ar' : 'en'
  }

  #has(token: number, trait: number): boolean {
    return (this.tokenizer.traits[token]! & trait) !== 0
  }
}
