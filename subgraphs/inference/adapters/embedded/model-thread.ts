import './no-telemetry.ts'
import { KisError } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import { Thread, ThreadUnavailable } from '../../../common/process/threads/thread.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { toBatches } from './batches.ts'
import { FairQueue, type JobRequest } from './fair-queue.ts'
import type { Embedded } from './model.ts'
import { checkModelFiles } from './model-files.ts'
import { StartLimit } from './start-limit.ts'
import type { ModelTask } from './thread.ts'
import type { Purpose } from './token-embeddings.ts'
import { END, MAX_TOKENS, SPECIAL_TOKENS, START } from './tokens.ts'

const FILE = new URL('./thread.ts', import.meta.url)
/** Most calls that wait or run. More are refused, so that a stalled thread cannot fill the memory. */
const MAX_CALLS = 20_000
/** Text of one step of the tokenizer, in UTF-16 units: about 10 ms. */
const STEP_LENGTH = 4_000

interface EmbedReply {
  readonly vectors: readonly Float32Array[]
  /** The token embeddings of each text. Empty unless requested. */
  readonly tokenEmbeddings: readonly Int8Array[]
  readonly tokens: number
}

interface Running {
  readonly thread: Thread
  /** The number of tokens that the model knows, once it is loaded. */
  readonly vocabulary: Promise<number>
}

/**
 * The model, in one worker thread. The first call starts the thread, because a service that embeds nothing does not
 * need the model in memory. If the thread has died, the next call starts another. Organizations share its time: batch
 * by batch of the network, and concurrently step by step of the tokenizer.
 */
export class ModelThread implements AsyncDisposable {
  readonly #file: URL
  readonly #directory: URL
  readonly #log: Log
  readonly #starts: StartLimit
  readonly #network = new FairQueue()
  readonly #tokenizer = new FairQueue()
  /** Undefined: the thread was not needed yet, has died, or could not load the model. */
  #running: Running | undefined
  #wasNeeded = false
  #problem: string | null = null
  #calls = 0
  #isClosed = false

  /** `modelDirectory` ends with a slash. Tests pass other code for the thread. */
  constructor(modelDirectory: URL, log: Log, clock: Clock, file = FILE) {
    this.#file = file
    this.#directory = modelDirectory
    this.#log = log
    this.#starts = new StartLimit(clock)
  }

  /**
   * Embeds texts, or tokens, and truncates them after 512 tokens. `withTokenEmbeddings` requests token embeddings, of
   * texts for this purpose. A call for a query whose texts fit into one batch precedes other calls.
   */
  embed(
    input: readonly (string | readonly number[])[],
    signal: AbortSignal,
    organizationId = '',
    { purpose, withTokenEmbeddings }: { readonly purpose: Purpose; readonly withTokenEmbeddings: boolean } = {
      purpose: 'query',
      withTokenEmbeddings: false,
    },
  ): Promise<EmbedReply> {
    return this.#call(signal, async (vocabulary) => {
      const strings = input.map((each) => (typeof each === 'string' ? each : ''))
      const found = strings.some((text) => text !== '') ? await this.#tokenize(strings, signal, organizationId) : []
      const all = input.map((each, index) => (typeof each === 'string' ? (found[index] ?? []) : toOwnTokens(each, vocabulary)))
      const texts = all.map((tokens) => tokens.slice(0, MAX_TOKENS - SPECIAL_TOKENS))
      const batches = toBatches(texts.map(({ length }) => length + SPECIAL_TOKENS))
      const vectors: Float32Array[] = []
      const tokenEmbeddings: Int8Array[] = []
      const request = { organizationId, isQuery: purpose === 'query' && batches.length === 1 }
      await this.#runQueued(this.#network, batches, request, signal, async (batch) => {
        const own = batch.map((index) => texts[index]!)
        const embedded = await this.#run<Embedded>({
          method: 'embed',
          texts: own,
          tokenEmbeddingsFor: withTokenEmbeddings ? purpose : null,
        })
        const width = embedded.vectors.length / batch.length
        for (const [row, index] of batch.entries()) {
          vectors[index] = embedded.vectors.subarray(row * width, (row + 1) * width)
          if (withTokenEmbeddings) tokenEmbeddings[index] = embedded.tokenEmbeddings[row]!
        }
      })
      return { vectors, tokenEmbeddings, tokens: texts.reduce((sum, { length }) => sum + length, 0) }
    })
  }

  /** The tokens of each text, without special tokens. */
  tokenize(texts: readonly string[], signal: AbortSignal, organizationId = ''): Promise<readonly (readonly number[])[]> {
    return this.#call(signal, () => this.#tokenize(texts, signal, organizationId))
  }

  /**
   * Why the model cannot serve, for the operator. Empty: it can. Waits while the model loads (about 1 s). Before the
   * first call, only its files are checked.
   */
  async problems(): Promise<readonly string[]> {
    if (!this.#wasNeeded) await this.#checkFiles()
    await this.#running?.vocabulary.catch(() => undefined)
    return this.#problem === null ? [] : [this.#problem]
  }

  async #checkFiles(): Promise<void> {
    const problem = await checkModelFiles(this.#directory).then(() => null, cannotLoad)
    // Meanwhile a call may have loaded the model, and know more.
    if (this.#wasNeeded) return
    if (problem !== null && problem !== this.#problem) this.#log.error({ problem }, 'the embedded model cannot be loaded')
    this.#problem = problem
  }

  /**
   * Waiting calls fail. The thread ends after its current task: terminated inside native code, it would end the
   * process.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#running?.thread[Symbol.asyncDispose]()
  }

  async #call<T>(signal: AbortSignal, work: (vocabulary: number) => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#calls >= MAX_CALLS) throw unavailable('Too many calls wait for the embedded model.')
    this.#calls += 1
    const working = this.#ready()
      .then(({ vocabulary }) => vocabulary)
      .then(work)
      .finally(() => {
        this.#calls -= 1
      })
    return untilAborted(working, signal)
  }

  async #tokenize(texts: readonly string[], signal: AbortSignal, organizationId: string): Promise<readonly (readonly number[])[]> {
    const tokens = texts.map((): number[] => [])
    await this.#runQueued(this.#tokenizer, toSteps(texts), { organizationId, isQuery: false }, signal, async (step) => {
      const own = step.map(({ text }) => text)
      const found = await this.#run<readonly (readonly number[])[]>({ method: 'tokenize', texts: own })
      for (const [piece, { index }] of step.entries()) for (const token of found[piece]!) tokens[index]!.push(token)
    })
    return tokens
  }

  /** Runs the parts of a call as the queue schedules them. After a part has failed, no other starts. */
  async #runQueued<Part>(
    queue: FairQueue,
    parts: readonly Part[],
    request: Omit<JobRequest, 'size'>,
    signal: AbortSignal,
    run: (part: Part) => Promise<void>,
  ): Promise<void> {
    let isOver = false
    const size = parts.length
    const running = parts.map((part) => queue.run({ ...request, size }, signal, async () => (isOver ? undefined : run(part))))
    await Promise.all(running).finally(() => {
      isOver = true
    })
  }

  async #run<T>(task: ModelTask): Promise<T> {
    const { thread } = await this.#ready()
    try {
      return await this.#send<T>(thread, task)
    } catch (error) {
      if (!(error instanceof ThreadUnavailable)) throw new KisError('engine_error', 'The embedded model failed.', { cause: error })
      if (!this.#isClosed) this.#log.error({ err: error }, 'the thread of the embedded model has died')
      void this.#end(thread)
      throw unavailable('The embedded model has stopped.', error)
    }
  }

  #send<T>(thread: Thread, task: ModelTask): Promise<T> {
    return thread.call<T>(this.#file, { directory: this.#directory.href, task })
  }

  async #ready(): Promise<Running> {
    if (this.#isClosed) throw unavailable('The embedded model is closed.')
    this.#wasNeeded = true
    this.#running ??= this.#start()
    const running = this.#running
    await running.vocabulary
    return running
  }

  #start(): Running {
    if (!this.#starts.count()) throw unavailable('The embedded model has failed repeatedly; the log says why.')
    const thread = new Thread()
    return { thread, vocabulary: this.#load(thread) }
  }

  async #load(thread: Thread): Promise<number> {
    try {
      const vocabulary = await this.#send<number>(thread, { method: 'load' })
      this.#problem = null
      return vocabulary
    } catch (error) {
      const reason = error instanceof ThreadUnavailable ? error.cause : error
      this.#problem = cannotLoad(reason)
      if (!this.#isClosed) this.#log.error({ err: reason }, 'the embedded model cannot be loaded')
      // The files may be repaired: the next call tries again.
      await this.#end(thread)
      throw unavailable('The embedded model cannot be loaded: its files are missing or corrupted.', error)
    }
  }

  /** Ends the thread. The next call starts another. */
  async #end(thread: Thread): Promise<void> {
    if (this.#running?.thread === thread) this.#running = undefined
    await thread[Symbol.asyncDispose]()
  }
}

interface Piece {
  /** The index of the text. */
  readonly index: number
  readonly text: string
}

/**
 * Groups short texts, and splits long ones. Pieces end at white space, which no token crosses, if their second half has
 * any.
 */
function toSteps(texts: readonly string[]): readonly (readonly Piece[])[] {
  const steps: Piece[][] = []
  let room = 0
  for (const [index, text] of texts.entries()) {
    for (let from = 0; from < text.length; ) {
      let end = Math.min(from + STEP_LENGTH, text.length)
      if (end < text.length) {
        const space = text.lastIndexOf(' ', end)
        if (space > from + STEP_LENGTH / 2) end = space
      }
      if (end - from > room) {
        steps.push([])
        room = STEP_LENGTH
      }
      steps.at(-1)!.push({ index, text: text.slice(from, end) })
      room -= end - from
      from = end
    }
  }
  return steps
}

/** @throws {KisError} `invalid_request`: the model has no such tokens */
function toOwnTokens(tokens: readonly number[], vocabulary: number): readonly number[] {
  const unknown = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary)
  if (unknown !== undefined)
    throw new KisError('invalid_request', `token ${unknown} is not of the model's ${vocabulary}`, { param: 'input' })
  return tokens[0] === START && tokens.at(-1) === END ? tokens.slice(1, -1) : tokens
}

function cannotLoad(error: unknown): string {
  return `the embedded model cannot be loaded: ${error instanceof Error ? error.message : String(error)}`
}

function unavailable(message: string, cause?: unknown): KisError {
  return new KisError('engine_unavailable', message, { cause, retryAfterMs: 1_000 })
}
