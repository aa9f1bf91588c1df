/**
 * Splits a network in the ONNX format into parts that run one after the other. The first takes the network's inputs.
 * Each ends with the tensor of a cut (the last with `output`), from which the next continues. A part may also read the
 * network's inputs. A weight is only in the parts that use it.
 * @throws {Error} the model has no such tensors
 */
export function modelParts(model: Buffer, cuts: readonly string[], output: string): Buffer[] {
  const fields = [...readFields(model)]
  const graph = fields.find(({ number }) => number === MODEL.graph)
  if (!graph) throw new Error('the model has no graph')
  const network = readNetwork(graph.content)
  const others = fields.filter((field) => field !== graph).map(({ whole }) => whole)
  return [...cuts, output].map((to, index) => Buffer.concat([...others, field(MODEL.graph, extractPart(network, cuts[index - 1], to))]))
}

/** Numbers of fields in onnx.proto3. */
const MODEL = { graph: 7 }
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 }
const NODE = { input: 1, output: 2 }
const VALUE = { name: 1, type: 2 }
const TENSOR_NAME = 8
/** `TypeProto { tensor_type { elem_type: FLOAT } }` */
const FLOATS = Buffer.from([0x0a, 0x02, 0x08, 0x01])

interface Node {
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly whole: Buffer
}

interface Network {
  /** In an order in which they can run. */
  readonly nodes: readonly Node[]
  readonly weights: ReadonlyMap<string, Buffer>
  readonly inputs: ReadonlyMap<string, Buffer>
}

function readNetwork(graph: Buffer): Network {
  const nodes: Node[] = []
  const weights = new Map<string, Buffer>()
  const inputs = new Map<string, Buffer>()
  const texts = (content: Buffer, wanted: number) =>
    [...readFields(content)].filter(({ number }) => number === wanted).map((each) => each.content.toString())
  for (const { number, content, whole } of readFields(graph)) {
    if (number === GRAPH.node) nodes.push({ inputs: texts(content, NODE.input), outputs: texts(content, NODE.output), whole })
    if (number === GRAPH.initializer) weights.set(texts(content, TENSOR_NAME)[0]!, whole)
    if (number === GRAPH.input) inputs.set(texts(content, VALUE.name)[0]!, whole)
  }
  return { nodes, weights, inputs }
}

/** The part of the graph from a tensor, or from the network's inputs, to a tensor. */
function extractPart({ nodes, weights, inputs }: Network, from: string | undefined, to: string): Buffer {
  const needed = new Set([to])
  const chosen: Buffer[] = []
  for (const { inputs: read, outputs, whole } of nodes.toReversed()) {
    if (!outputs.some((name) => needed.has(name) && name !== from)) continue
    chosen.unshift(whole)
    for (const name of read) needed.add(name)
  }
  if (chosen.length === 0 || (from !== undefined && !needed.has(from))) throw new Error(`the model does not lead to ${to}`)
  const of = (named: ReadonlyMap<string, Buffer>) => [...named].filter(([name]) => needed.has(name)).map(([, whole]) => whole)
  return Buffer.concat([
    field(GRAPH.name, Buffer.from(to)),
    ...chosen,
    ...of(weights),
    ...of(inputs),
    ...(from === undefined ? [] : [field(GRAPH.input, floats(from))]),
    field(GRAPH.output, floats(to)),
  ])
}

const floats = (name: string) => Buffer.concat([field(VALUE.name, Buffer.from(name)), field(VALUE.type, FLOATS)])

interface Field {
  readonly number: number
  /** For text, bytes and messages; otherwise empty. */
  readonly content: Buffer
  /** With its number and length. */
  readonly whole: Buffer
}

/** The fields of a message in the wire format of Protocol Buffers. */
function* readFields(message: Buffer): Generator<Field> {
  let at = 0
  const varint = () => {
    let value = 0
    for (let unit = 1; ; unit *= 128) {
      const byte = message[at++]
      if (byte === undefined) throw new Error('the model ends too soon')
      value += (byte % 128) * unit
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const begin = at
    const key = varint()
    let content = message.subarray(0, 0)
    if (key % 8 === 2) {
      const length = varint()
      content = message.subarray(at, at + length)
      at += length
    } else if (key % 8 === 0) varint()
    else at += key % 8 === 1 ? 8 : 4
    if (at > message.length) throw new Error('the model ends too soon')
    yield { number: Math.floor(key / 8), content, whole: message.subarray(begin, at) }
  }
}

/** Writes a field of text, bytes or a message. */
function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([encodeVarint(number * 8 + 2), encodeVarint(content.length), content])
}

function encodeVarint(value: number): Buffer {
  const bytes: number[] = []
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128)
  return Buffer.from([...bytes, value])
}
