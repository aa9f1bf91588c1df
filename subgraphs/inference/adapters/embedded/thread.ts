import { setImmediate as nextTurn } from 'node:timers/promises'
import { serveWorker, workerInput } from '../../../common/process/worker-rpc.ts'
import { toBatches } from './batches.ts'
import { Model, type Reading, readVectors } from './model.ts'
import { JobCancelled, StepQueue } from './step-queue.ts'
import type { Purpose } from './token-states.ts'

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
  /** Of each text; empty unless they were asked for, and the model has them. */
  readonly tokenStates: readonly Int8Array[]
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

/** `statesFor`: token states are asked for, of texts for this purpose. */
async function embed(
  job: number,
  input: readonly (string | readonly number[])[],
  organizationId: string,
  statesFor: Purpose | null,
): Promise<EmbedReply> {
  const model = await loadedFor(job)
  const { layers } = model
  const texts: (readonly number[])[] = []
  const reading = tokenizingSteps(input)
  await queue.run(job, organizationId, reading.length, (step) => {
    for (const each of reading[step]!) texts.push(model.toTokens(each))
  })
  const batches = toBatches(texts.map(({ length }) => length))
  let numbers = new Float32Array()
  const tokenStates: Int8Array[] = []
  let state: Reading
  await queue.run(job, organizationId, batches.length * layers, async (step) => {
    const layer = step % layers
    const batch = batches[Math.floor(step / layers)]!
    if (layer === 0) state = model.begin(batch.map((index) => texts[index]!))
    await model.run(layer, state)
    if (layer < layers - 1) return
    const vectors = readVectors(state)
    const width = vectors.length / batch.length
    if (numbers.length === 0) numbers = new Float32Array(width * texts.length)
    for (const [row, index] of batch.entries()) {
      numbers.set(vectors.subarray(row * width, (row + 1) * width), index * width)
      const states = statesFor && (await model.readTokenStates(state, row, texts[index]!, statesFor))
      if (states) tokenStates[index] = states
    }
  })
  return { numbers, tokenStates, tokens: texts.reduce((sum, { length }) => sum + length, 0) }
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

async function tokenize(job: number, texts: readonly string[], organizationId: string): Promise<readonly (readonly number[])[]> {
  const model = await loadedFor(job)
  const tokens = texts.map((): number[] => [])
  const steps = countingSteps(texts)
  await queue.run(job, organizationId, steps.length, (step) => {
    for (const { index, text } of steps[step]!) for (const token of model.tokenizer.tokens(text)) tokens[index]!.push(token)
  })
  return tokens
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

/** Groups inputs of which one step takes the tokens. The model reads only the beginning of a long one. */
function tokenizingSteps(input: readonly (string | readonly number[])[]): readonly (readonly (string | readonly number[])[])[] {
  const steps: (string | readonly number[])[][] = []
  let room = 0
  for (const each of input) {
    const size = typeof each === 'string' ? each.length : 0
    if (steps.length === 0 || size > room) {
      steps.push([])
      room = COUNT_STEP_LENGTH
    }
    steps.at(-1)!.push(each)
    room -= size
  }
  return steps
}

serveWorker({
  ready: async () => {
    await loading
  },
  embed,
  countTokens,
  tokenize,
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
