import './no-telemetry.ts'
import { availableParallelism } from 'node:os'
import { KisError } from '../../../common/errors.ts'
import type { Clock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'
import { lookAtModel } from './model-files.ts'
import { StartLimit } from './start-limit.ts'
import type { EmbedReply, ThreadInput } from './thread.ts'
import type { Purpose } from './token-states.ts'

const FILE = new URL('./thread.ts', import.meta.url)
const SECOND_FILE = new URL('./second-thread.ts', import.meta.url)

/**
 * The thread with the model, which has another for the second half of its layers. The first call starts it, because a
 * service that embeds nothing need not hold the model. If it has died, the next call starts it again.
 */
export class ModelThread implements AsyncDisposable {
  readonly #file: URL
  readonly #input: ThreadInput
  readonly #directory: URL
  readonly #log: Log
  readonly #starts: StartLimit
  #client: WorkerClient | undefined
  /** The last time that the model was loaded; undefined: nobody has needed it. */
  #loading: Promise<void> | undefined
  #problem: string | null = null
  #nextJob = 1
  #closed = false

  /** `modelDirectory` ends with a slash. Tests give other code of the threads, or another number of cores. */
  constructor(modelDirectory: URL, log: Log, clock: Clock, { file = FILE, secondFile = SECOND_FILE, cores = availableParallelism() } = {}) {
    this.#file = file
    this.#directory = modelDirectory
    this.#input = { modelDirectory: modelDirectory.href, secondFile: secondFile.href, cores }
    this.#log = log
    this.#starts = new StartLimit(clock)
  }

  /**
   * Organizations share the thread's time, layer by layer of the network. `statesFor` asks for token states, of texts for
   * this purpose.
   */
  embed(
    input: readonly (string | readonly number[])[],
    signal: AbortSignal,
    organizationId?: string,
    statesFor: Purpose | null = null,
  ): Promise<EmbedReply> {
    return this.#call('embed', input, signal, organizationId, statesFor)
  }

  countTokens(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly number[]> {
    return this.#call('countTokens', texts, signal, organizationId)
  }

  tokenize(texts: readonly string[], signal: AbortSignal, organizationId?: string): Promise<readonly (readonly number[])[]> {
    return this.#call('tokenize', texts, signal, organizationId)
  }

  /**
   * Why the model cannot serve, for the operator; empty when all is well. Waits while it loads (about a second). Before
   * the first call, this is what its files show from outside.
   */
  async problems(): Promise<readonly string[]> {
    if (this.#loading) await this.#loading
    else await this.#look()
    return this.#problem === null ? [] : [this.#problem]
  }

  async #look(): Promise<void> {
    const problem = await lookAtModel(this.#directory).then(
      () => null,
      (error: Error) => cannotLoad(error),
    )
    // Meanwhile a call may have loaded it, and known more.
    if (this.#loading) return this.#loading
    if (problem !== null && problem !== this.#problem) this.#log.error({ problem }, 'the embedded model cannot be loaded')
    this.#problem = problem
  }

  /** Running calls fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#client?.[Symbol.asyncDispose]()
  }

  #call<T>(
    method: 'embed' | 'countTokens' | 'tokenize',
    input: unknown,
    signal: AbortSignal,
    organizationId = '',
    ...more: readonly unknown[]
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      signal.throwIfAborted()
      if (this.#closed) throw unavailable('The embedded model is closed.')
      this.#client ??= this.#start()
      const client = this.#client
      const job = this.#nextJob++
      const onAbort = () => {
        client.call('cancel', [job]).catch(() => undefined)
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      client
        .call<T>(method, [job, input, organizationId, ...more])
        .finally(() => signal.removeEventListener('abort', onAbort))
        .then(resolve, (error) => reject(engineError(error)))
    })
  }

  #start(): WorkerClient {
    if (!this.#starts.count()) throw unavailable('The embedded model has failed repeatedly; the log says why.')
    const forget = () => {
      if (this.#client === client) this.#client = undefined
    }
    const client = new WorkerClient(this.#file, 'the embedded model', this.#input, {
      onExit: (error) => {
        forget()
        if (!this.#closed) this.#log.error({ err: error }, 'the thread of the embedded model has died')
      },
    })
    this.#loading = client.call<void>('ready', []).then(
      () => {
        this.#problem = null
      },
      async (error: Error) => {
        this.#problem = cannotLoad(error)
        if (!this.#closed) this.#log.error({ err: error }, 'the embedded model cannot be loaded')
        // The files may have been repaired: the next call tries again.
        forget()
        await client[Symbol.asyncDispose]()
      },
    )
    return client
  }
}

function cannotLoad({ message }: Error): string {
  return `the embedded model cannot be loaded: ${message}`
}

function unavailable(message: string, cause?: unknown): KisError {
  return new KisError('engine_unavailable', message, { cause, retryAfterMs: 1_000 })
}

/** `error` comes from the worker client, or was thrown in the thread and is recognised by its name. */
function engineError(error: unknown): KisError {
  const name = error instanceof Error ? error.name : ''
  if (name === 'ModelNotLoaded') return unavailable('The embedded model cannot be loaded: its files are missing or damaged.', error)
  if (name === 'InvalidTokens') return new KisError('invalid_request', (error as Error).message, { param: 'input', cause: error })
  if (name === 'JobCancelled' || error instanceof KisError) return unavailable('The embedded model has stopped.', error)
  return new KisError('engine_error', 'The embedded model failed.', { cause: error })
}
