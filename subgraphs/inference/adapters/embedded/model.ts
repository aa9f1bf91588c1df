import { readFile } from 'node:fs/promises'
import { Tensor } from 'onnxruntime-node'
import { Layers, MAX_TOKENS, newMemory, type Reading, toMask } from './layers.ts'
import type { Asked, Finished, Halfway } from './second-half.ts'
import type { StepQueue } from './step-queue.ts'
import type { TokenTraits } from './token-states.ts'
import { TRAITS } from './tokenizer/unigram.ts'
import { WordTokenizer } from './tokenizer/word-tokenizer.ts'

const START = 0
const PAD = 1
const END = 2
/** The marks that each text gets: `<s>` and `</s>`. */
export const MARKS = 2

/** The token lists do not fit the model. */
export class InvalidTokens extends Error {
  override readonly name = 'InvalidTokens'
}

/** A text that the model must embed as its makers did, and the first numbers of the result. */
interface Reference {
  readonly tolerance: number
  readonly texts: readonly {
    readonly text: string
    readonly input_ids: readonly number[]
    readonly neutral_embedding_first8: readonly number[]
  }[]
}

/** What the second half of the layers makes of texts, here or in another thread. */
export type Finish = (halfway: Halfway, asked: Asked, signal: AbortSignal) => Promise<Finished>

/** The tokenizer and the first half of the network, in the thread that loaded them. */
export class Model {
  readonly tokenizer: WordTokenizer
  readonly #layers: Layers
  readonly #vocabulary: number

  private constructor(layers: Layers, tokenizer: WordTokenizer, vocabulary: number) {
    this.#layers = layers
    this.tokenizer = tokenizer
    this.#vocabulary = vocabulary
  }

  /** `threads` compute one layer together. */
  static async load(directory: URL, threads: number): Promise<Model> {
    const tokenizer = await WordTokenizer.load(directory)
    const { vocab_size: vocabulary } = (await readJson(directory, 'config.json')) as { vocab_size: number }
    return new Model(await Layers.load(directory, 'first', threads), tokenizer, vocabulary)
  }

  /** Embeds the first reference text, to detect a damaged file or a runtime that computes wrongly. */
  async check(directory: URL, queue: StepQueue, finish: Finish): Promise<void> {
    const { tolerance, texts } = (await readJson(directory, 'reference.json')) as Reference
    const { text, input_ids: ids, neutral_embedding_first8: expected } = texts[0]!
    const tokens = this.tokenizer.tokens(text)
    if ([START, ...tokens, END].join() !== ids.join()) throw new Error('the tokenizer does not give the reference tokens')
    const asked = { organizationId: '', size: 1, statesFor: null }
    const { signal } = new AbortController()
    const { vectors } = await finish(await this.begin([tokens], asked, newMemory(), queue, signal), asked, signal)
    if (!expected.every((value, index) => Math.abs(value - vectors[index]!) <= tolerance))
      throw new Error('the model does not give the reference vector')
  }

  /** Layers of one half. */
  get layers(): number {
    return this.#layers.count
  }

  /** The tokens that the network reads of a text, without marks. What exceeds 512 tokens is left out. */
  toTokens(input: string | readonly number[]): readonly number[] {
    return typeof input === 'string' ? this.tokenizer.tokens(input, MAX_TOKENS - MARKS) : this.#checked(input)
  }

  /**
   * Takes texts, given their tokens, through the first half of the layers. They are padded to the longest; a vector does
   * not depend on the texts beside it. `memory` then holds their states.
   */
  async begin(
    texts: readonly (readonly number[])[],
    { organizationId, size }: Asked,
    memory: SharedArrayBuffer,
    queue: StepQueue,
    signal: AbortSignal,
  ): Promise<Halfway> {
    const lengths = texts.map(({ length }) => length + MARKS)
    const mask = toMask(lengths)
    const [, width] = mask.dims as [number, number]
    const ids = new BigInt64Array(mask.size).fill(BigInt(PAD))
    for (const [row, tokens] of texts.entries())
      for (const [index, token] of [START, ...tokens, END].entries()) ids[row * width + index] = BigInt(token)
    const reading: Reading = { state: new Tensor('int64', ids, mask.dims), mask, memory, vectors: null }
    await queue.run(organizationId, this.#layers.count, size, signal, (layer) => this.#layers.run(layer, reading))
    return { memory, lengths, traits: texts.map((tokens) => this.#traitsOf(tokens)) }
  }

  #traitsOf(tokens: readonly number[]): TokenTraits {
    const { traits } = this.tokenizer
    const has = (token: number, trait: number) => (traits[token]! & trait) !== 0
    const balance = tokens.reduce((sum, token) => sum + Number(has(token, TRAITS.arabic)) - Number(has(token, TRAITS.latin)), 0)
    const words = [...tokens.keys()].filter((place) => has(tokens[place]!, TRAITS.word))
    return { language: balance >= 0 ? 'ar' : 'en', words }
  }

  #checked(tokens: readonly number[]): readonly number[] {
    for (const token of tokens) {
      if (!Number.isInteger(token) || token < 0 || token >= this.#vocabulary)
        throw new InvalidTokens(`token ${token} is not of the model's ${this.#vocabulary}`)
    }
    const bare = tokens[0] === START && tokens.at(-1) === END ? tokens.slice(1, -1) : tokens
    return bare.slice(0, MAX_TOKENS - MARKS)
  }
}

async function readJson(directory: URL, name: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(name, directory), 'utf8'))
}
