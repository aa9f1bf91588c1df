import { ENTRY, encodeField, encodeNumber, type Field, GRAPH, MODEL, NODE, readFields, readTexts, TENSOR, VALUE } from './onnx-fields.ts'

/**
 * Weights from this size on may stay in the model's file: 8 MB. Only the table of the tokens has so many, of which a
 * text reads a row for each of its tokens.
 */
const LARGE_BYTES = 8 * 2 ** 20
/** `TensorProto.EXTERNAL` */
const EXTERNAL = 1

/**
 * Splits a network in the ONNX format into parts that run one after the other. The first takes the network's inputs, or
 * the tensor `from`. Each ends with the tensor of a cut (the last with the `outputs`), from which the next continues. A
 * part may also read the network's inputs. A weight is only in the parts that use it. `file`: the name of the file that
 * `model` was read from; parts then say where in it large weights are, instead of holding them. Parts are made one after
 * the other, because each takes memory.
 * @throws {Error} the model has no such tensors
 */
export function* modelParts(
  model: Buffer,
  {
    cuts,
    outputs,
    from,
    file,
  }: { readonly cuts: readonly string[]; readonly outputs: readonly string[]; readonly from?: string | undefined; readonly file?: string },
): Generator<Buffer> {
  const fields = [...readFields(model)]
  const graph = fields.find(({ number }) => number === MODEL.graph)
  if (!graph) throw new Error('the model has no graph')
  const network = readNetwork(graph.content, (tensor) => (file === undefined ? tensor.whole : keptOutside(tensor, model, file)))
  const others = fields.filter((field) => field !== graph).map(({ whole }) => whole)
  for (const [index, to] of [...cuts.map((cut) => [cut]), outputs].entries())
    yield Buffer.concat([...others, encodeField(MODEL.graph, extractPart(network, index === 0 ? from : cuts[index - 1], to))])
}

/** The weights of `model` if they are small; otherwise where they are in its file, from which the runtime maps them. */
function keptOutside(tensor: Field, model: Buffer, file: string): Buffer {
  const fields = [...readFields(tensor.content)]
  const data = fields.find(({ number }) => number === TENSOR.data)?.content
  if (!data || data.length < LARGE_BYTES) return tensor.whole
  const entry = (key: string, value: string) =>
    encodeField(TENSOR.outside, Buffer.concat([encodeField(ENTRY.key, Buffer.from(key)), encodeField(ENTRY.value, Buffer.from(value))]))
  const rest = fields.filter(({ number }) => number !== TENSOR.data).map(({ whole }) => whole)
  return encodeField(
    GRAPH.initializer,
    Buffer.concat([
      ...rest,
      entry('location', file),
      entry('offset', String(data.byteOffset - model.byteOffset)),
      entry('length', String(data.length)),
      encodeNumber(TENSOR.place, EXTERNAL),
    ]),
  )
}

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

function readNetwork(graph: Buffer, toWeights: (tensor: Field) => Buffer): Network {
  const nodes: Node[] = []
  const weights = new Map<string, Buffer>()
  const inputs = new Map<string, Buffer>()
  for (const field of readFields(graph)) {
    const { number, content, whole } = field
    if (number === GRAPH.node) nodes.push({ inputs: readTexts(content, NODE.input), outputs: readTexts(content, NODE.output), whole })
    if (number === GRAPH.initializer) weights.set(readTexts(content, TENSOR.name)[0]!, toWeights(field))
    if (number === GRAPH.input) inputs.set(readTexts(content, VALUE.name)[0]!, whole)
  }
  return { nodes, weights, inputs }
}

/** The part of the graph from a tensor, or from the network's inputs, to tensors. */
function extractPart({ nodes, weights, inputs }: Network, from: string | undefined, to: readonly string[]): Buffer {
  const needed = new Set(to)
  const chosen: Buffer[] = []
  for (const { inputs: read, outputs, whole } of nodes.toReversed()) {
    if (!outputs.some((name) => needed.has(name) && name !== from)) continue
    chosen.unshift(whole)
    for (const name of read) needed.add(name)
  }
  if (chosen.length === 0 || (from !== undefined && !needed.has(from))) throw new Error(`the model does not lead to ${to.join()}`)
  const of = (named: ReadonlyMap<string, Buffer>) => [...named].filter(([name]) => needed.has(name)).map(([, whole]) => whole)
  return Buffer.concat([
    encodeField(GRAPH.name, Buffer.from(to[0]!)),
    ...chosen,
    ...of(weights),
    ...of(inputs),
    ...(from === undefined ? [] : [encodeField(GRAPH.input, floats(from))]),
    ...to.map((name) => encodeField(GRAPH.output, floats(name))),
  ])
}

const floats = (name: string) => Buffer.concat([encodeField(VALUE.name, Buffer.from(name)), encodeField(VALUE.type, FLOATS)])
