import { parentPort, type Transferable, Worker, workerData } from 'node:worker_threads'
import { ServiceUnavailable } from '../../errors.ts'
import { type RemoteError, remoteError } from './thread-calls.ts'

/** A call, as sent to the thread. */
interface Call {
  readonly id: number
  readonly method: string
  readonly args: readonly unknown[]
}

type Reply = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: RemoteError }

/** Calls waiting for one thread. Beyond this new ones are refused, so that a stalled thread cannot fill the memory. */
const MAX_PENDING = 20_000

/**
 * Calls functions of a worker thread, which starts with the first call. When the thread dies, every pending and later
 * call fails with `service_unavailable`, and `onExit` is called.
 */
export class WorkerClient implements AsyncDisposable {
  readonly #connect: () => Worker
  #worker: Worker | undefined
  readonly #what: string
  readonly #pending = new Map<number, { readonly resolve: (value: never) => void; readonly reject: (error: unknown) => void }>()
  #nextId = 1
  #gone: unknown

  /**
   * `file` must call `serveWorker`. `what` names it in errors.
   */
  constructor(
    file: URL,
    what: string,
    data: unknown,
    options: {
      readonly onExit?: (error: unknown) => void
      readonly reviveError?: (error: RemoteError) => Error | undefined
    } = {},
  ) {
    this.#what = what
    const end = (error: unknown) => {
      for (const { reject } of this.#pending.values()) reject(new ServiceUnavailable(this.#what, { cause: error }))
      this.#pending.clear()
      this.#worker?.unref()
      if (this.#gone) return
      this.#gone = error
      options.onExit?.(error)
    }
    const answer = (reply: Reply) => {
      const waiting = this.#pending.get(reply.id)
      if (!waiting) return
      this.#pending.delete(reply.id)
      // The thread's handler decides the type, which `call<T>` names.
      if ('value' in reply) waiting.resolve(reply.value as never)
      else waiting.reject(options.reviveError?.(reply.error) ?? revived(reply.error))
    }
    this.#connect = () => {
      const port = new Worker(file, { workerData: data, name: what })
      port.on('error', end)
      port.on('exit', (code) => end(new Error(`${what} thread ended with code ${code}`)))
      port.on('message', (replies: readonly Reply[]) => {
        for (const reply of replies) answer(reply)
        if (this.#pending.size === 0) port.unref()
      })
      // An idle thread does not keep the process alive. A pending call does.
      port.unref()
      return port
    }
  }

  call<T>(method: string, args: readonly unknown[], transfer: readonly Transferable[] = []): Promise<T> {
    if (this.#gone) return Promise.reject(new ServiceUnavailable(this.#what, { cause: this.#gone }))
    if (this.#pending.size >= MAX_PENDING) return Promise.reject(new ServiceUnavailable(this.#what))
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId++
      this.#worker ??= this.#started()
      const port = this.#worker
      // Throws when an argument cannot be sent. The call is then not pending.
      port.postMessage({ id, method, args } satisfies Call, transfer)
      if (this.#pending.size === 0) port.ref()
      this.#pending.set(id, { resolve, reject })
    })
  }

  #started(): Worker {
    try {
      return this.#connect()
    } catch (error) {
      throw new ServiceUnavailable(this.#what, { cause: error })
    }
  }

  /** Ends the thread after the calls made so far. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#gone) return
    const closed = this.#worker && this.call('close', [])
    // Refuse calls from now on: one after `close` might never be answered.
    this.#gone = new Error(`${this.#what} is closed`)
    await closed?.catch(() => undefined)
    await this.#worker?.terminate()
  }
}

type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

/** The other side's error, as far as it crossed threads. */
function revived(error: RemoteError): Error {
  return Object.assign(new Error(error.message), error)
}

/**
 * Returned by a handler of `serveWorker` to move memory instead of copying it. The handler can no longer use what is in
 * `transfer`.
 */
export class Moved {
  readonly value: unknown
  readonly transfer: readonly Transferable[]

  constructor(value: unknown, transfer: readonly Transferable[]) {
    this.value = value
    this.transfer = transfer
  }
}

/**
 * In the thread: answers each call with the handler of its name, which may be async. Answers `close` itself if there is
 * no handler for it.
 */
export function serveWorker(handlers: Handlers): void {
  const line = place()
  line.on('message', async ({ id, method, args }: Call) => {
    try {
      const result = await findHandler(handlers, method)(...args)
      const { value, transfer } = result instanceof Moved ? result : { value: result, transfer: [] }
      line.postMessage([{ id, value }], transfer)
    } catch (error) {
      line.postMessage([{ id, error: remoteError(error) }])
    }
  })
}

function findHandler(handlers: Handlers, method: string): (...args: readonly unknown[]) => unknown {
  // The two sides agree on the arguments of each method, as with any call to another process.
  const handler = handlers[method] as ((...args: readonly unknown[]) => unknown) | undefined
  if (handler) return handler
  if (method === 'close') return () => undefined
  throw new Error(`no handler ${method}`)
}

function place(): NonNullable<typeof parentPort> {
  if (!parentPort) throw new Error('not in a worker thread')
  return parentPort
}

/** The data that the code was started with. */
export function workerInput<T>(): T {
  return workerData as T
}
