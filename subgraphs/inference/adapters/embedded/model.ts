import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { WordTokenizer } from './word-tokenizer.ts'

/** Tokens that the model reads of a text, with `<s>` and `</s>` (its model card). */
const MAX_TOKENS = 512
const START = 0
const END = 2
/** The embedding without the direction that tells Arabic from English: one index may hold both languages. */
const OUTPUT = 'neutral_embedding'

/** The token lists are not the model's. */
export class InvalidTokens extends Error {
  override readonly name = 'InvalidTokens'
}

/** A text that the model must embed as its makers did, and the result's first numbers. */
interface Reference {
  readonly tolerance: number
  readonly texts: readonly {
    readonly text: string
    readonly input_ids: readonly number[]
    readonly neutral_embedding_first8: readonly number[]
  }[]
}

/** The network and its tokenizer, in the thread that loaded them. */
export class Model {
  readonly #session: InferenceSession
  readonly tokenizer: WordTokenizer
  readonly #vocabulary: number

  private constructor(session: InferenceSession, tokenizer: WordTokenizer, vocabulary: number) {
    this.#session = session
    this.tokenizer = tokenizer
    this.#vocabulary = vocabulary
  }

  /** Loads the folder's model and embeds its first reference text, so that a damaged file or a runtime that reckons wrongly is found here. */
  static async load(directory: URL): Promise<Model> {
    const json = async (name: string) => JSON.parse(await readFile(new URL(name, directory), 'utf8'))
    const tokenizer = new WordTokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'))
    const { vocab_size: vocabulary } = (await json('config.json')) as { vocab_size: number }
    // One thread: the work is one text at a time, and the process has other things to do on the machine's cores.
    const session = await InferenceSession.create(fileURLToPath(new URL('model.onnx', directory)), { intraOpNumThreads: 1 })
    const model = new Model(session, tokenizer, vocabulary)
    await model.#check(await json('reference.json'))
    return model
  }

  /** The vector of a text, or of tokens without marks, of length 1; what is over 512 tokens is left out. `tokens` counts without marks. */
  async embed(input: string | readonly number[]): Promise<{ readonly vector: Float32Array; readonly tokens: number }> {
    const tokens = typeof input === 'string' ? this.tokenizer.tokens(input, MAX_TOKENS - 2) : this.#checked(input)
    const length = tokens.length + 2
    const ids = new BigInt64Array(length)
    ids[0] = BigInt(START)
    for (let index = 0; index < tokens.length; index += 1) ids[index + 1] = BigInt(tokens[index]!)
    ids[length - 1] = BigInt(END)
    const feeds = {
      input_ids: new Tensor('int64', ids, [1, length]),
      attention_mask: new Tensor('int64', new BigInt64Array(length).fill(1n), [1, length]),
    }
    const { [OUTPUT]: output } = await this.#session.run(feeds, [OUTPUT])
    return { vector: output!.data as Float32Array, tokens: tokens.length }
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
    const { vector } = await this.embed(text)
    if (!expected.every((value, index) => Math.abs(value - vector[index]!) <= tolerance))
      throw new Error('the model does not give the reference vector')
  }
}
