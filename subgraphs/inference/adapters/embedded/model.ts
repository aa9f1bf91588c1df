import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { fasterNetwork } from './faster-network.ts'
import { modelParts } from './model-parts.ts'
import { type Purpose, TokenStates } from './token-states.ts'
import { WordTokenizer } from './word-tokenizer.ts'

/** Tokens of a text that the model reads, including `<s>` and `</s>` (its model card). */
const MAX_TOKENS = 512
const MASK = 'attention_mask'
const START = 0
const PAD = 1
const END = 2
/** Threads that compute one step together. A machine with more keeps the others for requests. */
const THREADS = Math.min(2, availableParallelism())
/**
 * Waiting threads sleep. By default they spin, which takes the processor from the rest of the service: a text takes ten
 * times as long on a busy machine.
 */
const ASLEEP = { session: { intra_op: { allow_spinning: '0' } } }
/**
 * The embedding without the direction that separates Arabic from English, so that one index may hold both languages.
 */
const OUTPUT = 'neutral_embedding'
/** What the network makes of each token, in its text. */
const TOKEN_STATES = 'last_hidden_state'
/** What each layer of the network except the last passes to the next. */
const CUTS = Array.from({ length: 11 }, (_, layer) => `l${layer}.x2`)

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

/** Texts on their way through the network. */
export interface Reading {
  /** Input of the next layer. */
  state: Tensor
  readonly mask: Tensor
  /** Of every token, marks and padding included; null before the last layer. */
  tokenStates: Tensor | null
}

/** The network and its tokenizer, in the thread that loaded them. */
export class Model {
  /** One session for each layer, so that something else can run between two of them. */
  readonly #layers: readonly InferenceSession[]
  readonly tokenizer: WordTokenizer
  readonly #vocabulary: number
  readonly #tokenStates: TokenStates | null

  private constructor(layers: readonly InferenceSession[], tokenizer: WordTokenizer, vocabulary: number, tokenStates: TokenStates | null) {
    this.#layers = layers
    this.tokenizer = tokenizer
    this.#vocabulary = vocabulary
    this.#tokenStates = tokenStates
  }

  /**
   * Loads the folder's model, and embeds its first reference text to detect a damaged file or a runtime that computes
   * wrongly.
   */
  static async load(directory: URL): Promise<Model> {
    const json = async (name: string) => JSON.parse(await readFile(new URL(name, directory), 'utf8'))
    const words = (await json('tokenizer.json')) as {
      readonly model: { readonly vocab: readonly (readonly [piece: string, score: number])[] }
    }
    const tokenizer = new WordTokenizer(words, await json('tokenizer_config.json'))
    const pieces = words.model.vocab.map(([piece]) => piece)
    const { vocab_size: vocabulary } = (await json('config.json')) as { vocab_size: number }
    // No arena, because each session would keep its own.
    const options = { intraOpNumThreads: THREADS, extra: ASLEEP, enableCpuMemArena: false, enableMemPattern: false }
    const layers: InferenceSession[] = []
    for (const part of modelParts(fasterNetwork(await readFile(new URL('model.onnx', directory))), CUTS, [OUTPUT, TOKEN_STATES])) {
      layers.push(await InferenceSession.create(part, options))
    }
    const model = new Model(layers, tokenizer, vocabulary, await TokenStates.load(directory, pieces, options))
    await model.#check(await json('reference.json'))
    return model
  }

  get layers(): number {
    return this.#layers.length
  }

  /** The tokens that the network reads of a text, without marks. What exceeds 512 tokens is left out. */
  toTokens(input: string | readonly number[]): readonly number[] {
    return typeof input === 'string' ? this.tokenizer.tokens(input, MAX_TOKENS - 2) : this.#checked(input)
  }

  /** Begins with texts, which are padded to the longest. A vector does not depend on the texts beside it. */
  begin(texts: readonly (readonly number[])[]): Reading {
    const width = Math.max(...texts.map((tokens) => tokens.length)) + 2
    const shape = [texts.length, width]
    const ids = new BigInt64Array(texts.length * width).fill(BigInt(PAD))
    const mask = new BigInt64Array(ids.length)
    for (const [row, tokens] of texts.entries()) {
      const marked = [START, ...tokens, END]
      for (const [index, token] of marked.entries()) ids[row * width + index] = BigInt(token)
      mask.fill(1n, row * width, row * width + marked.length)
    }
    return { state: new Tensor('int64', ids, shape), mask: new Tensor('int64', mask, shape), tokenStates: null }
  }

  /** Runs one layer; call it with 0, 1, 2 and so on. After the last one the state holds the vectors, of length 1. */
  async run(layer: number, reading: Reading): Promise<void> {
    const session = this.#layers[layer]!
    const [state] = session.inputNames.filter((name) => name !== MASK)
    const [output] = session.outputNames
    const { [output!]: next, [TOKEN_STATES]: tokenStates } = await session.run({ [state!]: reading.state, [MASK]: reading.mask })
    reading.state = next!
    reading.tokenStates = tokenStates ?? null
  }

  /** What the last layer made of the tokens of one of the texts, made small; null: the model's folder does not say how. */
  async readTokenStates({ tokenStates }: Reading, row: number, tokens: readonly number[], purpose: Purpose): Promise<Int8Array | null> {
    if (!this.#tokenStates) return null
    const [, width, size] = tokenStates!.dims as [number, number, number]
    const from = (row * width + 1) * size
    const states = (tokenStates!.data as Float32Array).subarray(from, from + tokens.length * size)
    return this.#tokenStates.reduce(states, tokens, purpose)
  }

  #checked(tokens: readonly number[]): readonly number[] {
    for (const token of tokens) {
      if (!Number.isInteger(token) || token < 0 || token >= this.#vocabulary)
        throw new InvalidTokens(`token ${token} is not of the model's ${this.#vocabulary}`)
    }
    const bare = tokens[0] === START && tokens.at(-1) === END ? tokens.slice(1, -1) : tokens
    return bare.slice(0, MAX_TOKENS - 2)
  }

  async #check({ tolerance, texts }: Reference): Promise<void> {
    const { text, input_ids: ids, neutral_embedding_first8: expected } = texts[0]!
    const tokens = this.tokenizer.tokens(text)
    if ([START, ...tokens, END].join() !== ids.join()) throw new Error('the tokenizer does not give the reference tokens')
    const reading = this.begin([tokens])
    for (let layer = 0; layer < this.layers; layer++) await this.run(layer, reading)
    const vector = readVectors(reading)
    if (!expected.every((value, index) => Math.abs(value - vector[index]!) <= tolerance))
      throw new Error('the model does not give the reference vector')
  }
}

/** The vectors of texts that have passed all layers, one after the other. */
export const readVectors = ({ state }: Reading): Float32Array => state.data as Float32Array
