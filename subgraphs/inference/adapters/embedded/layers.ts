import { readFile } from 'node:fs/promises'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { fasterNetwork } from './faster-network.ts'
import { modelParts } from './model-parts.ts'

/**
 * The embedding without the direction that separates Arabic from English, so that one index may hold both languages.
 */
const OUTPUT = 'neutral_embedding'
/** What the network makes of each token, in its text. */
const TOKEN_STATES = 'last_hidden_state'
/** What each layer of the network except the last passes to the next. */
const CUTS = Array.from({ length: 11 }, (_, layer) => `l${layer}.x2`)
const MASK = 'attention_mask'
/** Layers of the first half. */
const HALF = 6
/** Numbers of a token's state. */
export const STATE_SIZE = 384

const HALVES = {
  first: { from: undefined, cuts: CUTS.slice(0, HALF - 1), outputs: [CUTS[HALF - 1]!] },
  second: { from: CUTS[HALF - 1], cuts: CUTS.slice(HALF), outputs: [OUTPUT, TOKEN_STATES] },
} as const

/** Texts on their way through the network, padded to one width. */
export interface Reading {
  /** Input of the next layer. After the last one it holds the vectors, of length 1. */
  state: Tensor
  readonly mask: Tensor
  /** Memory of an earlier state, which the next one takes. */
  spare: Float32Array | null
  /** Of every token, marks and padding included; null before the last layer. */
  tokenStates: Tensor | null
}

/**
 * How onnxruntime computes. Threads that wait sleep. By default they spin, which takes the processor from the rest of
 * the service: a text takes ten times as long on a busy machine. There is no arena, because each session would keep its
 * own.
 */
export function sessionOptions(threads: number): InferenceSession.SessionOptions {
  const asleep = { session: { intra_op: { allow_spinning: '0' } } }
  return { intraOpNumThreads: threads, extra: asleep, enableCpuMemArena: false, enableMemPattern: false }
}

/** Half of the network's layers. Each is a session, so that something else can run between two of them. */
export class Layers {
  readonly #sessions: readonly InferenceSession[]

  private constructor(sessions: readonly InferenceSession[]) {
    this.#sessions = sessions
  }

  /** `threads` compute one layer together. */
  static async load(directory: URL, half: keyof typeof HALVES, threads: number): Promise<Layers> {
    const { from, cuts, outputs } = HALVES[half]
    const sessions: InferenceSession[] = []
    for (const part of modelParts(await readFile(new URL('model.onnx', directory)), cuts, outputs, from))
      sessions.push(await InferenceSession.create(fasterNetwork(part), sessionOptions(threads)))
    return new Layers(sessions)
  }

  get count(): number {
    return this.#sessions.length
  }

  /** Runs one layer; call it with 0, 1, 2 and so on. */
  async run(layer: number, reading: Reading): Promise<void> {
    const session = this.#sessions[layer]!
    const { state, mask } = reading
    const [input] = session.inputNames.filter((name) => name !== MASK)
    const [output] = session.outputNames
    const feeds = { [input!]: state, [MASK]: mask }
    if (session.outputNames.includes(TOKEN_STATES)) {
      const { [OUTPUT]: vectors, [TOKEN_STATES]: tokenStates } = await session.run(feeds)
      reading.state = vectors!
      reading.tokenStates = tokenStates!
      return
    }
    // Memory that the runtime gives stays until the next collection of garbage: some 4 MB for a passage.
    const numbers = reading.spare ?? new Float32Array(mask.size * STATE_SIZE)
    const next = new Tensor('float32', numbers, [...mask.dims, STATE_SIZE])
    await session.run(feeds, { [output!]: next })
    reading.spare = state.data instanceof Float32Array ? state.data : null
    reading.state = next
  }
}

/** 1 for each of a text's tokens, marks included, and 0 for what pads it. `lengths`: of each text. */
export function toMask(lengths: readonly number[], width: number): Tensor {
  const mask = new BigInt64Array(lengths.length * width)
  for (const [row, length] of lengths.entries()) mask.fill(1n, row * width, row * width + length)
  return new Tensor('int64', mask, [lengths.length, width])
}
