import { readFile } from 'node:fs/promises'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { encodeField, encodeNumber, GRAPH, MODEL, NODE, OPERATOR_SET, TENSOR, VALUE } from './onnx-fields.ts'

/** Numbers of a token state as the network gives it, and as it is kept. */
const FULL = 384
const WIDTH = 128
/** The most states of a text: 4 KB. More tokens than that are put together with those that mean nearly the same. */
const MAX_STATES = 32
/** Tokens of `query: ` and of `passage: `, which are in every text. */
const PREFIX_TOKENS = { passage: 2, query: 3 }
/** What a state of length 1 is multiplied by to be rounded. */
const SCALE = 127

const STATES = 'states'
const MEAN = 'mean'
const AXES = 'axes'
const PROJECTED = 'projected'
const PRODUCTS = 'products'
/** `TensorProto.FLOAT`, and `TypeProto { tensor_type { elem_type: FLOAT } }`. */
const FLOAT = 1
const FLOATS = Buffer.from([0x0a, 0x02, 0x08, FLOAT])
/** Versions of ONNX that have the operators. */
const FORMAT = 8
const OPERATORS = 17

export type Purpose = 'query' | 'passage'
export type Language = 'ar' | 'en'

/** The mean states of tokens, by purpose and language. */
type Means = Readonly<Record<Purpose, Readonly<Record<Language, Float32Array>>>>

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

  /** `states`: of the tokens of a text with its prefix, one after the other, without the marks at its ends. */
  async reduce(states: Float32Array, purpose: Purpose, language: Language): Promise<Int8Array> {
    const own = states.subarray(PREFIX_TOKENS[purpose] * FULL)
    if (own.length === 0) return new Int8Array()
    const mean = new Tensor('float32', this.#means[purpose][language], [FULL])
    const rows = new Tensor('float32', own, [own.length / FULL, FULL])
    const { [PROJECTED]: projected, [PRODUCTS]: products } = await this.#projection.run({ [STATES]: rows, [MEAN]: mean })
    const kept = putTogether(projected!.data as Float32Array, products!.data as Float32Array)
    return Int8Array.from(kept, (x) => Math.max(-SCALE, Math.min(SCALE, Math.round(x * SCALE))))
  }
}

/**
 * A network that takes the mean away from states, gives what is left length 1, and projects it on the axes: rows of
 * `WIDTH`, one for each number of a full state. It also gives the product of each row with each. onnxruntime does it in
 * a tenth of the time that JavaScript takes.
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
    node('Transpose', [PROJECTED], 'columns'),
    node('MatMul', [PROJECTED, 'columns'], PRODUCTS),
    text(GRAPH.name, PROJECTED),
    encodeField(GRAPH.initializer, weights),
    encodeField(GRAPH.input, floats(STATES)),
    encodeField(GRAPH.input, floats(MEAN)),
    encodeField(GRAPH.output, floats(PROJECTED)),
    encodeField(GRAPH.output, floats(PRODUCTS)),
  ]
  return Buffer.concat([
    encodeNumber(MODEL.format, FORMAT),
    encodeField(MODEL.operators, encodeNumber(OPERATOR_SET.version, OPERATORS)),
    encodeField(MODEL.graph, Buffer.concat(graph)),
  ])
}

/**
 * Means of at most `MAX_STATES` groups of states. Each is alone at first; then the two groups are put together whose
 * union adds least to the squared distances from the means (Ward), until few enough are left. So a rare token keeps a
 * group of its own, and the many that are alike share one. `products`: of each state with each.
 */
function putTogether(states: Float32Array, products: Float32Array): Float32Array {
  const count = states.length / WIDTH
  if (count <= MAX_STATES) return states
  const means = states.slice()
  const sizes = new Uint16Array(count).fill(1)
  const row = (group: number) => means.subarray(group * WIDTH, (group + 1) * WIDTH)
  // What the union of two groups adds; the same in both directions.
  const costs = new Float32Array(count * count)
  for (let a = 0; a < count; a++)
    for (let b = 0; b < a; b++) {
      const cost = (products[a * count + a]! + products[b * count + b]!) / 2 - products[a * count + b]!
      costs[a * count + b] = cost
      costs[b * count + a] = cost
    }
  // Of each group the cheapest partner.
  const partners = new Uint16Array(count)
  const least = new Float32Array(count)
  const offer = (group: number, partner: number) => {
    const cost = costs[group * count + partner]!
    if (cost >= least[group]!) return
    least[group] = cost
    partners[group] = partner
  }
  const look = (group: number) => {
    least[group] = Number.POSITIVE_INFINITY
    for (let other = 0; other < count; other++) if (other !== group && sizes[other]! > 0) offer(group, other)
  }
  for (let group = 0; group < count; group++) look(group)
  for (let left = count; left > MAX_STATES; left--) {
    let into = 0
    for (let group = 1; group < count; group++) if (least[group]! < least[into]!) into = group
    const from = partners[into]!
    const [sizeInto, sizeFrom, cost] = [sizes[into]!, sizes[from]!, least[into]!]
    const [mean, other] = [row(into), row(from)]
    for (let i = 0; i < WIDTH; i++) mean[i] = (mean[i]! * sizeInto + other[i]! * sizeFrom) / (sizeInto + sizeFrom)
    sizes[into] = sizeInto + sizeFrom
    sizes[from] = 0
    least[from] = Number.POSITIVE_INFINITY
    for (let group = 0; group < count; group++) {
      const size = sizes[group]!
      if (size === 0 || group === into) continue
      // What Lance and Williams found: the costs of a union follow from those of its two parts.
      const toInto = costs[group * count + into]!
      const toFrom = costs[group * count + from]!
      const toUnion = ((size + sizeInto) * toInto + (size + sizeFrom) * toFrom - size * cost) / (size + sizeInto + sizeFrom)
      costs[group * count + into] = toUnion
      costs[into * count + group] = toUnion
      if (partners[group] === into || partners[group] === from) look(group)
      else offer(group, into)
    }
    look(into)
  }
  const kept = new Float32Array(MAX_STATES * WIDTH)
  let place = 0
  for (let group = 0; group < count; group++) if (sizes[group]! > 0) kept.set(row(group), place++ * WIDTH)
  return kept
}
