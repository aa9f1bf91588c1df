import { ATTRIBUTE, encodeField, encodeNumber, type Field, GRAPH, MODEL, NODE, readFields, readTexts, TENSOR } from './onnx-fields.ts'

/** Weights of one block of `MatMulNBits`, and the bytes that they take with 4 bits each. */
const BLOCK = 32
const PACKED_BLOCK = BLOCK / 2
/** What stands for zero: the operator's default for unsigned weights. */
const ZERO_OF_4_BITS = 8
const ZERO_OF_8_BITS = 128
/** `AttributeProto.INT` */
const INTEGER = 2

/**
 * Writes a network so that onnxruntime 1.30 computes it in four fifths of the time. The weights keep their values, and
 * vectors differ from those of the network as it is by the rounding of the operators (a cosine of .99997).
 * - Weights of 4 bits get 8, so that no layer has to unpack them for each text. They take 11 MB more.
 * - `SkipLayerNormalization`, which is slow, becomes a sum and a `LayerNormalization`.
 */
export function fasterNetwork(model: Buffer): Buffer {
  return rewrite(model, ({ number, content, whole }) => (number === MODEL.graph ? encodeField(number, fasterGraph(content)) : whole))
}

function fasterGraph(graph: Buffer): Buffer {
  const packed = new Set<string>()
  for (const { number, content } of readFields(graph)) {
    if (number === GRAPH.node && operatorOf(content) === 'MatMulNBits') packed.add(readTexts(content, NODE.input)[1]!)
  }
  return rewrite(graph, ({ number, content, whole }) => {
    if (number === GRAPH.initializer && packed.has(readTexts(content, TENSOR.name)[0]!)) return encodeField(number, with8Bits(content))
    if (number !== GRAPH.node) return whole
    const operator = operatorOf(content)
    if (operator === 'MatMulNBits') return encodeField(number, rewrite(content, to8Bits))
    return operator === 'SkipLayerNormalization' ? splitNormalization(content) : whole
  })
}

function rewrite(message: Buffer, toField: (field: Field) => Buffer): Buffer {
  return Buffer.concat([...readFields(message)].map(toField))
}

const operatorOf = (node: Buffer) => readTexts(node, NODE.operator)[0]

function attributeName({ number, content }: Field): string | undefined {
  return number === NODE.attribute ? readTexts(content, ATTRIBUTE.name)[0] : undefined
}

function to8Bits(field: Field): Buffer {
  if (attributeName(field) !== 'bits') return field.whole
  const name = encodeField(ATTRIBUTE.name, Buffer.from('bits'))
  return encodeField(NODE.attribute, Buffer.concat([name, encodeNumber(ATTRIBUTE.integer, 8), encodeNumber(ATTRIBUTE.type, INTEGER)]))
}

/** @throws {Error} the weights are not in blocks of 32 */
function with8Bits(tensor: Buffer): Buffer {
  const sizes = [...readFields(tensor)].filter(({ number }) => number === TENSOR.dimension)
  const last = sizes.at(-1)
  if (!last?.whole.equals(encodeNumber(TENSOR.dimension, PACKED_BLOCK))) throw new Error('the weights are not in blocks of 32')
  return rewrite(tensor, (field) => {
    if (field.number === TENSOR.data) return encodeField(TENSOR.data, unpack(field.content))
    return field.number === TENSOR.dimension && field.whole.byteOffset === last.whole.byteOffset
      ? encodeNumber(TENSOR.dimension, BLOCK)
      : field.whole
  })
}

/** Two weights of 4 bits are in a byte, the first in its lower half. */
function unpack(packed: Buffer): Buffer {
  const unpacked = Buffer.alloc(2 * packed.length)
  const toZero = ZERO_OF_8_BITS - ZERO_OF_4_BITS
  for (let index = 0; index < packed.length; index += 1) {
    const both = packed[index]!
    unpacked[2 * index] = (both & 0xf) + toZero
    unpacked[2 * index + 1] = (both >> 4) + toZero
  }
  return unpacked
}

function splitNormalization(node: Buffer): Buffer {
  const [input = '', skip = '', ...weights] = readTexts(node, NODE.input)
  const [output = ''] = readTexts(node, NODE.output)
  const epsilon = [...readFields(node)].filter((field) => attributeName(field) === 'epsilon').map(({ whole }) => whole)
  const sum = `${output}.sum`
  return Buffer.concat([makeNode('Add', [input, skip], sum, []), makeNode('LayerNormalization', [sum, ...weights], output, epsilon)])
}

function makeNode(operator: string, inputs: readonly string[], output: string, attributes: readonly Buffer[]): Buffer {
  const text = (number: number, value: string) => encodeField(number, Buffer.from(value))
  const fields = [
    ...inputs.map((input) => text(NODE.input, input)),
    text(NODE.output, output),
    text(NODE.name, output),
    text(NODE.operator, operator),
    ...attributes,
  ]
  return encodeField(GRAPH.node, Buffer.concat(fields))
}
