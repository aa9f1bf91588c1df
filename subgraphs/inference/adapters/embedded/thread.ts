import { setImmediate as nextTurn } from 'node:timers/promises'
import { serveWorker, workerInput } from '../../../common/process/worker-rpc.ts'
import { Model, type Reading, readVector } from './model.ts'
import { JobCancelled, StepQueue } from './step-queue.ts'

/** The thread that `ModelThread` starts and calls. */

/** Text counted in one step, in UTF-16 units: about 10 ms. */
const COUNT_STEP_LENGTH = 4_000

/** The model's files are missing or damaged. */
class ModelNotLoaded extends Error {
  override readonly name = 'ModelNotLoaded'
}

export interface ThreadInput {
  /** With a slash at its end. */
  readonly modelDirectory: string
}

export interface EmbedReply {
  /** All vectors, one after the other. */
  readonly numbers: Float32Array
  readonly tokens: number
}

const queue = new StepQueue()
/** Jobs that wait for the model to load, and are not cancelled. */
const waiting = new Set<number>()
const loading = Model.load(new URL(workerInput<ThreadInput>().modelDirectory)).catch((cause: unknown) => {
  throw new ModelNotLoaded(cause instanceof Error ? cause.message : String(cause))
})
// Every call waits for it and gets its failure. Before the first call nobody does.
loading.catch(() => undefined)

async function embed(job: number, input: readonly (string | readonly number[])[], organizationId: string): Promise<EmbedReply> {
  const model = await loadedFor(job)
  const { layers } = model
  const vectors: Float32Array[] = []
  let tokens = 0
  let reading: Reading
  await queue.run(job, organizationId, input.length * layers, async (step) => {
    const layer = step % layers
    if (layer === 0) reading = model.begin(input[step / layers]!)
    await model.run(layer, reading)
    if (layer < layers - 1) return
    vectors.push(readVector(reading))
    tokens += reading.tokens
  })
  const width = vectors[0]?.length ?? 0
  const numbers = new Float32Array(width * vectors.length)
  for (const [index, vector] of vectors.entries()) numbers.set(vector, index * width)
  return { numbers, tokens }
}

async function countTokens(job: number, texts: readonly string[], organizationId: string): Promise<readonly number[]> {
  const model = await loadedFor(job)
  const counts = texts.map(() => 0)
  const steps = countingSteps(texts)
  await queue.run(job, organizationId, steps.length, (step) => {
    for (const { index, text } of steps[step]!) counts[index]! += model.tokenizer.count(text)
  })
  return counts
}

/**
 * @throws {JobCancelled} the job was cancelled meanwhile
 * @throws {ModelNotLoaded} the model's files are missing or damaged
 */
async function loadedFor(job: number): Promise<Model> {
  waiting.add(job)
  const model = await loading.finally(() => {
    if (!waiting.delete(job)) throw new JobCancelled('the job was cancelled')
  })
  return model
}

/**
 * Groups short texts, and splits long ones. Pieces end at white space, which no token crosses, if there is any in their
 * second half.
 */
function countingSteps(texts: readonly string[]): { readonly index: number; readonly text: string }[][] {
  const steps: { index: number; text: string }[][] = []
  let room = 0
  for (const [index, text] of texts.entries()) {
    for (let from = 0; from < text.length; ) {
      let end = Math.min(from + COUNT_STEP_LENGTH, text.length)
      if (end < text.length) {
        const space = text.lastIndexOf(' ', end)
        if (space > from + COUNT_STEP_LENGTH / 2) end = space
      }
      if (end - from > room) {
        steps.push([])
        room = COUNT_STEP_LENGTH
      }
      steps.at(-1)!.push({ index, text: text.slice(from, end) })
      room -= end - from
      from = end
    }
  }
  return steps
}

serveWorker({
  ready: async () => {
    await loading
  },
  embed,
  countTokens,
  cancel: (job: number) => {
    waiting.delete(job)
    queue.cancel(job)
  },
  close: async () => {
    queue.cancelAll()
    // Answers the cancelled calls before this one.
    await nextTurn()
  },
})
