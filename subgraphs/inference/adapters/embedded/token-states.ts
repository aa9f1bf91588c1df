import { readFile } from 'node:fs/promises'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { encodeField, encodeNumber, GRAPH, MODEL, NODE, OPERATOR_SET, TENSOR, VALUE } from './onnx-fields.ts'

/** Numbers of a token state as the network gives it, and as it is kept. */
const FULL = 384
const WIDTH = 128
/** The most states of a query. More tokens than that are put together with those that mean nearly the same. */
const MAX_STATES = 32
/** Tokens of `query: ` and of `passage: `, which are in every text. */
const PREFIX_TOKENS = { passage: 2, query: 3 }
/** What a query's state of length 1 is multiplied by to be rounded. */
const SCALE = 127
/** The first byte of a passage's states: of their numbers, the signs follow. */
const SIGNS = 1

const STATES = 'states'
const MEAN = 'mean'
const AXES = 'axes'
const PROJECTED = 'projected'
/** `TensorProto.FLOAT`, and `TypeProto { tensor_type { elem_type: FLOAT } }`. */
const FLOAT = 1
const FLOATS = Buffer.from([0x0a, 0x02, 0x08, FLOAT])
/** Versions of ONNX that have the operators. */
const FORMAT = 8
const OPERATORS = 17

export type Purpose = 'query' | 'passage'

/** What a text's tokens say of it. */
export interface TokenTraits {
  /** The language of most of its letters. */
  readonly language: 'ar' | 'en'
  /** The places of the tokens with a letter or a digit, from 0, marks left out. */
  readonly words: readonly number[]
}

/** The mean states of tokens, by purpose and language. */
type Means = Readonly<Record<Purpose, Readonly<Record<TokenTraits['language'], Float32Array>>>>

/**
 * Makes the states of a text's tokens small and comparable. What all tokens of a language and purpose have in common is
 * taken away, because it would hide what a token means; what is left has length 1, and keeps the directions in which
 * tokens differ most.
 */
export class TokenStates {
  readonly #means: Means
  readonly #projection: InferenceSession

  private constructor(means: Means, projection: InferenceSession) {
    this.#means = means
    this.#projection = projection
  }

  /**
   * Reads `token-states.f32` of a model's folder, which `fit-token-states.ts` writes. Gives null for a folder without it.
   * @throws {Error} the file has another length
   */
  static async load(directory: URL, options: InferenceSession.SessionOptions): Promise<TokenStates | null> {
    const bytes = await readFile(new URL('token-states.f32', directory)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw error
    })
    if (!bytes) return null
    const numbers = new Float32Array(Uint8Array.from(bytes).buffer)
    if (numbers.length !== FULL * (4 + WIDTH)) throw new Error(`token-states.f32 has ${numbers.length} numbers`)
    const mean = (place: number) => numbers.subarray(place * FULL, (place + 1) * FULL)
    const means = { passage: { ar: mean(0), en: mean(1) }, query: { ar: mean(2), en: mean(3) } }
    const projection = await InferenceSession.create(makeProjection(numbers.subarray(4 * FULL)), options)
    return new TokenStates(means, projection)
  }

  /**
   * `states`: of the tokens of a text with its prefix, one after the other, without the marks at its ends. Of a query,
   * which is short and made anew for each search, whole numbers are given for each of its words; of a passage, which is
   * stored, one bit for each number.
   */
  async reduce(states: Float32Array, purpose: Purpose, { language, words }: TokenTraits): Promise<Int8Array> {
    const own = states.subarray(PREFIX_TOKENS[purpose] * FULL)
    if (own.length === 0) return new Int8Array()
    const projected = await this.#project(own, this.#means[purpose][language])
    if (purpose === 'passage') return toSigns(projected)
    const kept = putTogether(withoutPunctuation(projected, words, PREFIX_TOKENS[purpose]))
    return Int8Array.from(kept, (x) => Math.max(-SCALE, Math.min(SCALE, Math.round(x * SCALE))))
  }

  async #project(states: Float32Array, mean: Float32Array): Promise<Float32Array> {
    const rows = new Tensor('float32', states, [states.length / FULL, FULL])
    const { [PROJECTED]: projected } = await this.#projection.run({ [STATES]: rows, [MEAN]: new Tensor('float32', mean, [FULL]) })
    return projected!.data as Float32Array
  }
}

/**
 * A network that takes the mean away from states, gives what is left length 1, and projects it on the axes: rows of
 * `WIDTH`, one for each number of a full state. onnxruntime does it in a tenth of the time that JavaScript takes.
 */
function makeProjection(axes: Float32Array): Buffer {
  const text = (number: number, value: string) => encodeField(number, Buffer.from(value))
  const node = (operator: string, inputs: readonly string[], output: string) =>
    encodeField(
      GRAPH.node,
      Buffer.concat([...inputs.map((input) => text(NODE.input, input)), text(NODE.output, output), text(NODE.operator, operator)]),
    )
  const floats = (name: string) => Buffer.concat([text(VALUE.name, name), encodeField(VALUE.type, FLOATS)])
  const weights = Buffer.concat([
    encodeNumber(TENSOR.dimension, FULL),
    encodeNumber(TENSOR.dimension, WIDTH),
    encodeNumber(TENSOR.type, FLOAT),
    text(TENSOR.name, AXES),
    encodeField(TENSOR.data, Buffer.from(axes.buffer, axes.byteOffset, axes.byteLength)),
  ])
  const graph = [
    node('Sub', [STATES, MEAN], 'rest'),
    node('LpNormalization', ['rest'], 'directions'),
    node('MatMul', ['directions', AXES], PROJECTED),
    text(GRAPH.name, PROJECTED),
    encodeField(GRAPH.initializer, weights),
    encodeField(GRAPH.input, floats(STATES)),
    encodeField(GRAPH.input, floats(MEAN)),
    encodeField(GRAPH.output, floats(PROJECTED)),
  ]
  return Buffer.concat([
    encodeNumber(MODEL.format, FORMAT),
    encodeField(MODEL.operators, encodeNumber(OPERATOR_SET.version, OPERATORS)),
    encodeField(MODEL.graph, Buffer.concat(graph)),
  ])
}

/** A question mark says nothing about what answers. All stay where there is nothing else. `from`: the first token of `states`. */
function withoutPunctuation(states: Float32Array, words: readonly number[], from: number): Float32Array {
  const own = words.filter((place) => place >= from)
  if (own.length === 0) return states
  const kept = new Float32Array(own.length * WIDTH)
  for (const [row, place] of own.entries()) kept.set(states.subarray((place - from) * WIDTH, (place - from + 1) * WIDTH), row * WIDTH)
  return kept
}

/** Bit `i` of the bytes after the first is set where number `i` is above 0. */
function toSigns(states: Float32Array): Int8Array {
  const signs = new Int8Array(1 + states.length / 8)
  signs[0] = SIGNS
  for (let i = 0; i < states.length; i++) if (states[i]! > 0) signs[1 + (i >> 3)]! |= 1 << (i & 7)
  return signs
}

/**
 * Means of at most `MAX_STATES` groups of states. Each is alone at first; then the two groups are put together whose
 * union adds least to the squared distances from the means (Ward), until few enough are left. So a rare token keeps a
 * group of its own, and the many that are alike share one.
 */
function putTogether(states: Float32Array): Float32Array {
  const count = states.length / WIDTH
  if (count <= MAX_STATES) return states
  const means = states.slice()
  const sizes = new Uint16Array(count).fill(1)
  const row = (group: number) => means.subarray(group * WIDTH, (group + 1) * WIDTH)
  const costOf = (a: number, b: number) => {
    let squares = 0
    for (let i = a * WIDTH, j = b * WIDTH, end = i + WIDTH; i < end; i++, j++) squares += (means[i]! - means[j]!) ** 2
    return (squares * sizes[a]! * sizes[b]!) / (sizes[a]! + sizes[b]!)
  }
  // Of each group the cheapest partner after it.
  const partners = new Uint16Array(count)
  const costs = new Float32Array(count)
  const look = (a: number) => {
    costs[a] = Number.POSITIVE_INFINITY
    for (let b = a + 1; b < count; b++) if (sizes[b]! > 0) offer(a, b)
  }
  const offer = (a: number, b: number) => {
    const cost = costOf(a, b)
    if (cost < costs[a]!) {
      costs[a] = cost
      partners[a] = b
    }
  }
  for (let group = 0; group < count; group++) look(group)
  for (let left = count; left > MAX_STATES; left--) {
    const into = costs.reduce((least, cost, group) => (cost < costs[least]! ? group : least), 0)
    const from = partners[into]!
    const size = sizes[into]! + sizes[from]!
    for (const [i, x] of row(from).entries()) row(into)[i] = (row(into)[i]! * sizes[into]! + x * sizes[from]!) / size
    sizes[into] = size
    sizes[from] = 0
    costs[from] = Number.POSITIVE_INFINITY
    look(into)
    for (let group = 0; group < from; group++) {
      if (sizes[group] === 0 || group === into) continue
      if (partners[group] === into || partners[group] === from) look(group)
      else if (group < into) offer(group, into)
    }
  }
  const kept = new Float32Array(MAX_STATES * WIDTH)
  let place = 0
  for (let group = 0; group < count; group++) if (sizes[group]! > 0) kept.set(row(group), place++ * WIDTH)
  return kept
}
