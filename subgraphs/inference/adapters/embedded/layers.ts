import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { InferenceSession, Tensor } from 'onnxruntime-node'
import { fasterNetwork } from './faster-network.ts'
import { NETWORK_FILE } from './model-files.ts'
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
/** Layers of the first half: an even number, so that the second goes on where the first has written. */
const HALF = 6
/** Numbers of a token's state. */
export const STATE_SIZE = 384
/** Tokens of a text that the model reads, marks included (its model card). A batch has no more. */
export const MAX_TOKENS = 512
const STATES_BYTES = MAX_TOKENS * STATE_SIZE * Float32Array.BYTES_PER_ELEMENT

const HALVES = {
  first: { from: undefined, cuts: CUTS.slice(0, HALF - 1), outputs: [CUTS[HALF - 1]!] },
  second: { from: CUTS[HALF - 1], cuts: CUTS.slice(HALF), outputs: [OUTPUT, TOKEN_STATES] },
} as const

/** Texts on their way through the network, padded to one width. */
export interface Reading {
  /** Tokens for the first layer; then what the last layer made of each token, marks and padding included. */
  state: Tensor
  readonly mask: Tensor
  /** Holds the states. The even layers of a half write its first part, the odd ones its second. */
  readonly memory: SharedArrayBuffer
  /** One vector for each text, of length 1, one after the other; null before the last layer. */
  vectors: Float32Array | null
}

/** Memory for the texts of one reading. The system gives pages of it when they are first used. */
export const newMemory = (): SharedArrayBuffer => new SharedArrayBuffer(2 * STATES_BYTES)

/** The memory of the states that the odd layers write, or the even ones. */
export function statesIn(memory: SharedArrayBuffer, layer: number, tokens: number): Float32Array {
  return new Float32Array(memory, (layer % 2) * STATES_BYTES, tokens * STATE_SIZE)
}

/**
 * How onnxruntime computes. Threads that wait sleep. By default they spin, which takes the processor from the rest of
 * the service: a text takes ten times as long on a busy machine. There is no arena, because each session would keep its
 * own. `directory`: where a network's weights are that it does not hold.
 */
export function sessionOptions(threads: number, directory?: URL): InferenceSession.SessionOptions {
  const outside = directory && { model_external_initializers_file_folder_path: fileURLToPath(directory) }
  const extra = { session: { intra_op: { allow_spinning: '0' }, ...outside } }
  return { intraOpNumThreads: threads, extra, enableCpuMemArena: false, enableMemPattern: false }
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
    const options = sessionOptions(threads, directory)
    // In one piece, which goes back to the system. `readFile` would read many, and then join them.
    const model = readFileSync(new URL(NETWORK_FILE, directory))
    for (const part of modelParts(model, { cuts, outputs, from, file: NETWORK_FILE })) {
      const network = fasterNetwork(part)
      sessions.push(await InferenceSession.create(network, options))
      // The session has its own copy. These megabytes would stay until the next collection of garbage.
      for (const { buffer } of [part, network]) (buffer as ArrayBuffer).transfer(0)
    }
    ;(model.buffer as ArrayBuffer).transfer(0)
    return new Layers(sessions)
  }

  get count(): number {
    return this.#sessions.length
  }

  /**
   * Runs one layer; call it with 0, 1, 2 and so on. The states lie in memory that is used again: what the runtime gives
   * out by itself, 4 MB for a passage, would stay until the next collection of garbage.
   */
  async run(layer: number, reading: Reading): Promise<void> {
    const session = this.#sessions[layer]!
    const { state, mask, memory } = reading
    const [input] = session.inputNames.filter((name) => name !== MASK)
    const [output] = session.outputNames
    const next = new Tensor('float32', statesIn(memory, layer, mask.size), [...mask.dims, STATE_SIZE])
    const [texts] = mask.dims as [number]
    const isLast = output === OUTPUT
    const vectors = isLast ? new Tensor('float32', new Float32Array(texts * STATE_SIZE), [texts, STATE_SIZE]) : null
    await session.run({ [input!]: state, [MASK]: mask }, vectors ? { [OUTPUT]: vectors, [TOKEN_STATES]: next } : { [output!]: next })
    reading.state = next
    reading.vectors = vectors && (vectors.data as Float32Array)
  }
}

/** 1 for each of a text's tokens, and 0 for what pads it to the longest. `lengths`: of each text, marks included. */
export function toMask(lengths: readonly number[]): Tensor {
  const width = Math.max(...lengths)
  const mask = new BigInt64Array(lengths.length * width)
  for (const [row, length] of lengths.entries()) mask.fill(1n, row * width, row * width + length)
  return new Tensor('int64', mask, [lengths.length, width])
}
