import { workerData } from 'node:worker_threads'
import { Model } from './model.ts'
import type { Purpose } from './token-embeddings.ts'

/** The thread of the embedded model. It runs what it is called for at once: `ModelThread` says when. */

export interface ThreadInput {
  /** With a slash at its end. */
  readonly modelDirectory: string
}

export interface EmbedTask {
  /** Tokens of each text, without marks. */
  readonly texts: readonly (readonly number[])[]
  readonly statesFor: Purpose | null
}

/** What a call gives. It throws nothing, so a call that fails is one whose thread has died. */
export type Reply<T> = { readonly value: T } | { readonly error: unknown }

/** Loaded by the first call. */
let loading: Promise<Model> | undefined

function answering<Task, T>(run: (model: Model, task: Task) => T | Promise<T>): (task: Task) => Promise<Reply<T>> {
  return async (task) => {
    try {
      loading ??= Model.load(new URL((workerData as ThreadInput).modelDirectory))
      return { value: await run(await loading, task) }
    } catch (error) {
      return { error }
    }
  }
}

/** Gives the number of the model's tokens. */
export const load = answering(({ tokenizer }) => tokenizer.traits.length)

export const tokenize = answering(({ tokenizer }, texts: readonly string[]) => texts.map((text) => tokenizer.tokens(text)))

export const embed = answering((model, { texts, statesFor }: EmbedTask) => model.embed(texts, statesFor))
