import { encodeField, GRAPH, MODEL, NODE, readFields, readTexts, TENSOR, VALUE } from './onnx-fields.ts'

/**
 * Splits a network in the ONNX format into parts that run one after the other. The first takes the network's inputs, or
 * the tensor `from`. Each ends with the tensor of a cut (the last with the `outputs`), from which the next continues. A part may also read
 * the network's inputs. A weight is only in the parts that use it.
 * @throws {Error} the model has no such tensors
 */
export function modelParts(model: Buffer, cuts: readonly string[], outputs: readonly string[], from?: string): Buffer[] {
  const fields = [...readFields(model)]
  const graph = fields.find(({ number }) => number === MODEL.graph)
  if (!graph) throw new Error('the model has no graph')
  const network = readNetwork(graph.content)
  const others = fields.filter((field) => field !== graph).map(({ whole }) => whole)
  return [...cuts.map((cut) => [cut]), outputs].map((to, index) =>
    Buffer.concat([...others, encodeField(MODEL.graph, extractPart(network, index === 0 ? from : cuts[index - 1], to))]),
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

function readNetwork(graph: Buffer): Network {
  const nodes: Node[] = []
  const weights = new Map<string, Buffer>()
  const inputs = new Map<string, Buffer>()
  for (const { number, content, whole } of readFields(graph)) {
    if (number === GRAPH.node) nodes.push({ inputs: readTexts(content, NODE.input), outputs: readTexts(content, NODE.output), whole })
    if (number === GRAPH.initializer) weights.set(readTexts(content, TENSOR.name)[0]!, whole)
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
