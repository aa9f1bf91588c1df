import { setImmediate as nextTurn } from 'node:timers/promises'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import { createLog } from '../../../common/process/log.ts'
import { serveWorker, workerInput } from '../../../common/process/threads/worker-rpc.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { toBatches } from './batches.ts'
import { newMemory } from './layers.ts'
import { type Finish, MARKS, Model } from './model.ts'
import { ModelNotLoaded } from './model-not-loaded.ts'
import { type Asked, type Finished, SecondHalf } from './second-half.ts'
import { SecondThread } from './second-thread-client.ts'
import { StepQueue } from './step-queue.ts'
import type { Purpose } from './token-states.ts'

/** The thread that `ModelThread` starts and calls. */

/** Text counted in one step, in UTF-16 units: about 10 ms. */
const COUNT_STEP_LENGTH = 4_000
/**
 * Batches on their way through the network, of calls with several: both halves are busy, and little waits for the
 * second. An organization alone gets half.
 */
const MAX_BATCHES = 8
/** The same, of calls with one, which do not wait for the others. */
const MAX_SINGLE_BATCHES = 16
/** Memory that is kept for the next batches. Each takes 1.6 MB at most. */
const MAX_FREE_MEMORIES = 8
/** How often a batch is repeated whose thread has died. */
const MAX_REPEATS = 2

export interface ThreadInput {
  /** With a slash at its end. */
  readonly modelDirectory: string
  /** The code of the second thread. */
  readonly secondFile: string
  /** Cores of the machine. With one there is no second thread. */
  readonly cores: number
}

export interface EmbedReply {
  /** All vectors, one after the other. */
  readonly numbers: Float32Array
  /** Of each text; empty unless they were asked for, and the model has them. */
  readonly tokenStates: readonly Int8Array[]
  readonly tokens: number
}

/** The job was cancelled before it was done. */
class JobCancelled extends Error {
  override readonly name = 'JobCancelled'
}

const { modelDirectory, secondFile, cores } = workerInput<ThreadInput>()
const directory = new URL(modelDirectory)
/** Threads that compute one layer together. Two halves on two cores take one each, which is the least work. */
const threads = cores >= 4 ? 2 : 1
const queue = new StepQueue()
const log = createLog('inference', 'error')
const second = cores > 1 ? new SecondThread(new URL(secondFile), { modelDirectory, threads }, log) : null
const jobs = new Map<number, AbortController>()
const places = {
  single: new FairPlaces(MAX_SINGLE_BATCHES, Number.POSITIVE_INFINITY),
  several: new FairPlaces(MAX_BATCHES, Number.POSITIVE_INFINITY),
}
const freeMemories: SharedArrayBuffer[] = []
const loading = load().catch(ModelNotLoaded.rethrow)
// Every call waits for it and gets its failure. Before the first call nobody does.
loading.catch(() => undefined)

async function load(): Promise<{ readonly model: Model; readonly finish: Finish }> {
  const parts = [Model.load(directory, threads), loadSecond()] as const
  // When one fails, the other still comes to its end: ending a thread while it loads ends the process.
  await Promise.allSettled(parts)
  const [model, finish] = await Promise.all(parts)
  await model.check(directory, queue, finish)
  return { model, finish }
}

async function loadSecond(): Promise<Finish> {
  if (second) {
    await second.ready()
    return (halfway, asked) => second.finish(halfway, asked)
  }
  const here = await SecondHalf.load(directory, queue, threads)
  return (halfway, asked, signal) => here.finish(halfway, asked, signal)
}

/** Runs a job until it is done or cancelled. */
async function run<T>(job: number, work: (controller: AbortController) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  jobs.set(job, controller)
  return untilAborted(work(controller), controller.signal).finally(() => jobs.delete(job))
}

/** `statesFor`: token states are asked for, of texts for this purpose. */
function embed(
  job: number,
  input: readonly (string | readonly number[])[],
  organizationId: string,
  statesFor: Purpose | null,
): Promise<EmbedReply> {
  return run(job, async (controller) => {
    const { signal } = controller
    const { model, finish } = await loading
    const texts: (readonly number[])[] = []
    const reading = tokenizingSteps(input)
    await queue.run(organizationId, reading.length, reading.length, signal, (step) => {
      for (const each of reading[step]!) texts.push(model.toTokens(each))
    })
    const batches = toBatches(texts.map(({ length }) => length + MARKS))
    const room = batches.length > 1 ? places.several : places.single
    let numbers = new Float32Array()
    const tokenStates: Int8Array[] = []
    const put = (batch: readonly number[], { vectors, tokenStates: states }: Finished) => {
      const width = vectors.length / batch.length
      if (numbers.length === 0) numbers = new Float32Array(width * texts.length)
      for (const [row, index] of batch.entries()) {
        numbers.set(vectors.subarray(row * width, (row + 1) * width), index * width)
        if (states[row]) tokenStates[index] = states[row]
      }
    }
    const running: Promise<void>[] = []
    for (const [index, batch] of batches.entries()) {
      const leave = await room.take(organizationId, signal)
      const asked = { organizationId, statesFor, size: (batches.length - index) * model.layers }
      const own = batch.map((place) => texts[place]!)
      const done = embedBatch(model, finish, own, asked, signal).then((finished) => put(batch, finished))
      running.push(done.catch((error: unknown) => controller.abort(error)).finally(leave))
    }
    await Promise.all(running)
    return { numbers, tokenStates, tokens: texts.reduce((sum, { length }) => sum + length, 0) }
  })
}

/** Takes texts through the network. Begins again if the thread with the second half has died. */
async function embedBatch(
  model: Model,
  finish: Finish,
  texts: readonly (readonly number[])[],
  asked: Asked,
  signal: AbortSignal,
): Promise<Finished> {
  const memory = freeMemories.pop() ?? newMemory()
  try {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await finish(await model.begin(texts, asked, memory, queue, signal), asked, signal)
      } catch (error) {
        if (!(error instanceof ServiceUnavailable) || repeats === MAX_REPEATS || signal.aborted) throw error
      }
    }
  } finally {
    if (freeMemories.length < MAX_FREE_MEMORIES) freeMemories.push(memory)
  }
}

function countTokens(job: number, texts: readonly string[], organizationId: string): Promise<readonly number[]> {
  return run(job, async ({ signal }) => {
    const { model } = await loading
    const counts = texts.map(() => 0)
    const steps = countingSteps(texts)
    await queue.run(organizationId, steps.length, steps.length, signal, (step) => {
      for (const { index, text } of steps[step]!) counts[index]! += model.tokenizer.count(text)
    })
    return counts
  })
}

function tokenize(job: number, texts: readonly string[], organizationId: string): Promise<readonly (readonly number[])[]> {
  return run(job, async ({ signal }) => {
    const { model } = await loading
    const tokens = texts.map((): number[] => [])
    const steps = countingSteps(texts)
    await queue.run(organizationId, steps.length, steps.length, signal, (step) => {
      for (const { index, text } of steps[step]!) for (const token of model.tokenizer.tokens(text)) tokens[index]!.push(token)
    })
    return tokens
  })
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
  cancel: (job: number) => jobs.get(job)?.abort(new JobCancelled('the job was cancelled')),
  close: async () => {
    for (const controller of jobs.values()) controller.abort(new JobCancelled('the model is closed'))
    await second?.[Symbol.asyncDispose]()
    // The thread may end only when the network's native code has returned.
    await loading.catch(() => undefined)
    // Answers the cancelled calls before this one.
    await nextTurn()
  },
})
