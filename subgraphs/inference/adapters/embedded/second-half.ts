import { Tensor } from 'onnxruntime-node'
import { Layers, type Reading, STATE_SIZE, sessionOptions, statesIn, toMask } from './layers.ts'
import type { StepQueue } from './step-queue.ts'
import { type Purpose, TokenStates, type TokenTraits } from './token-states.ts'

/** The last layer of the first half. */
const LAST_OF_FIRST = 5

/** Texts that have passed the first half of the layers, padded to one width. */
export interface Halfway {
  /** Holds the states of all tokens. It must stay untouched until the second half is done. */
  readonly memory: SharedArrayBuffer
  /** Of each text, marks included. */
  readonly lengths: readonly number[]
  readonly traits: readonly TokenTraits[]
}

/** What the rest of the way is for. */
export interface Asked {
  readonly organizationId: string
  /** Steps of the call that these texts are a part of. Small calls come first. */
  readonly size: number
  /** Token states are asked for, of texts for this purpose. */
  readonly statesFor: Purpose | null
}

export interface Finished {
  /** One after the other. */
  readonly vectors: Float32Array
  /** Of each text; empty unless they were asked for, and the model has them. */
  readonly tokenStates: readonly Int8Array[]
}

/** The second half of the layers, and what they make of texts. */
export class SecondHalf {
  readonly #layers: Layers
  /** Null: the model's folder does not say how they are made small. */
  readonly #tokenStates: TokenStates | null
  readonly #queue: StepQueue

  private constructor(layers: Layers, tokenStates: TokenStates | null, queue: StepQueue) {
    this.#layers = layers
    this.#tokenStates = tokenStates
    this.#queue = queue
  }

  /** `queue` runs the layers; `threads` compute one together. */
  static async load(directory: URL, queue: StepQueue, threads: number): Promise<SecondHalf> {
    const layers = await Layers.load(directory, 'second', threads)
    return new SecondHalf(layers, await TokenStates.load(directory, sessionOptions(threads)), queue)
  }

  async finish({ memory, lengths, traits }: Halfway, { organizationId, size, statesFor }: Asked, signal: AbortSignal): Promise<Finished> {
    const mask = toMask(lengths)
    const [, width] = mask.dims as [number, number]
    const state = new Tensor('float32', statesIn(memory, LAST_OF_FIRST, mask.size), [...mask.dims, STATE_SIZE])
    const reading: Reading = { state, mask, memory, vectors: null }
    const tokenStates: Int8Array[] = []
    const last = this.#layers.count - 1
    await this.#queue.run(organizationId, this.#layers.count, size, signal, async (layer) => {
      await this.#layers.run(layer, reading)
      if (layer !== last || !statesFor || !this.#tokenStates) return
      const all = reading.state.data as Float32Array
      for (const [row, length] of lengths.entries()) {
        // Without the marks at both ends.
        const own = all.subarray((row * width + 1) * STATE_SIZE, (row * width + length - 1) * STATE_SIZE)
        tokenStates.push(await this.#tokenStates.reduce(own, statesFor, traits[row]!))
      }
    })
    return { vectors: reading.vectors!, tokenStates }
  }
}
