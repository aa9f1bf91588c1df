import { answering } from '../../../common/process/threads/thread-calls.ts'
import { Model } from './model.ts'
import type { Purpose } from './token-embeddings.ts'

/** The thread of the embedded model. It runs what it is called for at once: `ModelThread` says when. */

export type ModelTask =
  /** Gives the number of the model's tokens. */
  | { readonly method: 'load' }
  | { readonly method: 'tokenize'; readonly texts: readonly string[] }
  /** `texts`: tokens of each, without marks. */
  | { readonly method: 'embed'; readonly texts: readonly (readonly number[])[]; readonly tokenEmbeddingsFor: Purpose | null }

/** Loaded by the first call. */
let loading: Promise<Model> | undefined

/** `directory` ends with a slash. */
export const call = answering(async ({ directory, task }: { readonly directory: string; readonly task: ModelTask }) => {
  loading ??= Model.load(new URL(directory))
  const model = await loading
  if (task.method === 'embed') return model.embed(task.texts, task.tokenEmbeddingsFor)
  return task.method === 'tokenize' ? task.texts.map((text) => model.tokenizer.tokens(text)) : model.tokenizer.traits.length
})
