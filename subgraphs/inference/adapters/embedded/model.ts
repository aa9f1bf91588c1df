import { readFile } from 'node:fs/promises'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { modelParts } from './model-parts.ts'
import { WordTokenizer } from './word-tokenizer.ts'

/** Tokens of a text that the model reads, including `<s>` and `</s>` (its model card). */
const MAX_TOKENS = 512
const MASK = 'attention_mask'
const START = 0
const END = 2
/**
 * The embedding without the direction that separates Arabic from English, so that one index may hold both languages.
 */
const OUTPUT = 'neutral_embedding'
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

/** A text on its way through the network. */
export interface Reading {
  /** Without marks. */
  readonly tokens: number
  /** Input of the next layer. */
  state: Tensor
  readonly mask: Tensor
}

/** The network and its tokenizer, in the thread that loaded them. */
export class Model {
  /** One session for each layer, so that something else can run between two of them. */
  readonly #layers: readonly InferenceSession[]
  readonly tokenizer: WordTokenizer
  readonly #vocabulary: number

  private constructor(layers: readonly InferenceSession[], tokenizer: WordTokenizer, vocabulary: number) {
    this.#layers = layers
    this.tokenizer = tokenizer
    this.#vocabulary = vocabulary
  }

  /**
   * Loads the folder's model, and embeds its first reference text to detect a damaged file or a runtime that computes
   * wrongly.
   */
  static async load(directory: URL): Promise<Model> {
    const json = async (name: string) => JSON.parse(await readFile(new URL(name, directory), 'utf8'))
    const tokenizer = new WordTokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'))
    const { vocab_size: vocabulary } = (await json('config.json')) as { vocab_size: number }
    const layers: InferenceSession[] = []
    for (const part of modelParts(await readFile(new URL('model.onnx', directory)), CUTS, OUTPUT)) {
      // One thread, because the process needs the machine's other cores. No arena, because each session would keep its
      // own.
      layers.push(await InferenceSession.create(part, { intraOpNumThreads: 1, enableCpuMemArena: false, enableMemPattern: false }))
    }
    const model = new Model(layers, tokenizer, vocabulary)
    await model.#check(await json('reference.json'))
    return model
  }

  get layers(): number {
    return this.#layers.length
  }

  /** Begins with a text, or with tokens without marks. What exceeds 512 tokens is left out. */
  begin(input: string | readonly number[]): Reading {
    const tokens = typeof input === 'string' ? this.tokenizer.tokens(input, MAX_TOKENS - 2) : this.#checked(input)
    const length = tokens.length + 2
    const ids = new BigInt64Array(length)
    ids[0] = BigInt(START)
    for (let index = 0; index < tokens.length; index += 1) ids[index + 1] = BigInt(tokens[index]!)
    ids[length - 1] = BigInt(END)
    const mask = new Tensor('int64', new BigInt64Array(length).fill(1n), [1, length])
    return { tokens: tokens.length, state: new Tensor('int64', ids, [1, length]), mask }
  }

  /** Runs one layer; call it with 0, 1, 2 and so on. After the last one the state is the text's vector, of length 1. */
  async run(layer: number, reading: Reading): Promise<void> {
    const session = this.#layers[layer]!
    const [state] = session.inputNames.filter((name) => name !== MASK)
    const [output] = session.outputNames
    const { [output!]: next } = await session.run({ [state!]: reading.state, [MASK]: reading.mask })
    reading.state = next!
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
    const tokens = [START, ...this.tokenizer.tokens(text), END]
    if (tokens.join() !== ids.join()) throw new Error('the tokenizer does not give the reference tokens')
    const reading = this.begin(text)
    for (let layer = 0; layer < this.layers; layer++) await this.run(layer, reading)
    const vector = readVector(reading)
    if (!expected.every((value, index) => Math.abs(value - vector[index]!) <= tolerance))
      throw new Error('the model does not give the reference vector')
  }
}

/** The vector of a text that has passed all layers. */
export const readVector = ({ state }: Reading): Float32Array => state.data as Float32Array
