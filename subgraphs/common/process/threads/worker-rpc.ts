import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable, Worker, workerData } from 'node:worker_threads'
import { ServiceUnavailable } from '../../errors.ts'
import type { SharedThread } from './shared-thread.ts'

/** A call, as sent to the thread. */
interface Call {
  readonly id: number
  readonly method: string
  readonly args: readonly unknown[]
}

type Reply = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: RemoteError }

/**
 * What remains of an error that crossed threads. `name` identifies it; `data` is the error's own `data`, if it had one.
 */
export interface RemoteError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly data?: unknown
}

/** Calls waiting for one thread. Beyond this new ones are refused, so that a stalled thread cannot fill the memory. */
const MAX_PENDING = 20_000

/** Where calls go. */
interface Line {
  readonly port: Worker | MessagePort
  /** Ends what serves the line, once it has no calls. */
  readonly hangUp: () => Promise<unknown>
}

/**
 * Calls functions of a worker thread, which starts with the first call. When the thread dies, every pending and later
 * call fails with `service_unavailable`, and `onExit` is called.
 */
export class WorkerClient implements AsyncDisposable {
  readonly #connect: () => Line
  #line: Line | undefined
  readonly #what: string
  readonly #pending = new Map<number, { readonly resolve: (value: never) => void; readonly reject: (error: unknown) => void }>()
  #nextId = 1
  #gone: unknown

  /**
   * `file` must call `serveWorker` or `serveWorkerInBatches`. `what` names it in errors. Without `shared` it has a thread
   * of its own.
   */
  constructor(
    file: URL,
    what: string,
    data: unknown,
    options: {
      readonly onExit?: (error: unknown) => void
      readonly reviveError?: (error: RemoteError) => Error | undefined
      readonly shared?: SharedThread
    } = {},
  ) {
    this.#what = what
    const end = (error: unknown) => {
      for (const { reject } of this.#pending.values()) reject(new ServiceUnavailable(this.#what, { cause: error }))
      this.#pending.clear()
      this.#line?.port.unref()
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
      const line = options.shared ? sharedLine(options.shared, file, data, end) : ownLine(file, data, what, end)
      const { port } = line
      port.on('message', (replies: readonly Reply[]) => {
        for (const reply of replies) answer(reply)
        if (this.#pending.size === 0) port.unref()
      })
      // An idle thread does not keep the process alive. A pending call does.
      port.unref()
      return line
    }
  }

  /** @throws {ServiceUnavailable} its thread has ended, or it is closed */
  checkAlive(): void {
    if (this.#gone) throw new ServiceUnavailable(this.#what, { cause: this.#gone })
  }

  call<T>(method: string, args: readonly unknown[], transfer: readonly Transferable[] = []): Promise<T> {
    if (this.#gone) return Promise.reject(new ServiceUnavailable(this.#what, { cause: this.#gone }))
    if (this.#pending.size >= MAX_PENDING) return Promise.reject(new ServiceUnavailable(this.#what))
    return new Promise<T>((resolve, reject) => {
      const id = this.#nextId++
      this.#line ??= this.#started()
      const { port } = this.#line
      // Throws when an argument cannot be sent. The call is then not pending.
      port.postMessage({ id, method, args } satisfies Call, transfer)
      if (this.#pending.size === 0) port.ref()
      this.#pending.set(id, { resolve, reject })
    })
  }

  #started(): Line {
    try {
      return this.#connect()
    } catch (error) {
      throw new ServiceUnavailable(this.#what, { cause: error })
    }
  }

  /** Ends the thread after the calls made so far. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#gone) return
    const closed = this.#line && this.call('close', [])
    // Refuse calls from now on: one after `close` might never be answered.
    this.#gone = new Error(`${this.#what} is closed`)
    await closed?.catch(() => undefined)
    await this.#line?.hangUp()
  }
}

function sharedLine(shared: SharedThread, file: URL, data: unknown, end: (error: unknown) => void): Line {
  const { line, leave } = shared.serve(file, data, end)
  return { port: line, hangUp: leave }
}

function ownLine(file: URL, data: unknown, name: string, end: (error: unknown) => void): Line {
  const worker = new Worker(file, { workerData: data, name })
  worker.on('error', end)
  worker.on('exit', (code) => end(new Error(`${name} thread ended with code ${code}`)))
  return { port: worker, hangUp: () => worker.terminate() }
}

type Handlers = Readonly<Record<string, (...args: never[]) => unknown>>

function toReply(id: number, run: () => unknown): Reply {
  try {
    return { id, value: run() }
  } catch (error) {
    return { id, error: remoteError(error) }
  }
}

export function remoteError(error: unknown): RemoteError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: undefined }
  return { name: error.name, message: error.message, stack: error.stack, data: 'data' in error ? error.data : undefined }
}

/** The other side's error, as far as it crossed threads. */
export function revived(error: RemoteError): Error {
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
  const { line } = place()
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

/**
 * In the thread: takes the calls that have arrived together, at most `maxBatch`, and runs their handlers in order
 * inside `around`, for example in one transaction. Answers them when `around` has returned. When `around` throws, every
 * call of the batch fails with its error.
 */
export function serveWorkerInBatches(handlers: Handlers, around: (run: () => void) => void, maxBatch: number): void {
  const { line } = place()
  line.on('message', (first: Call) => {
    const calls = [first]
    while (calls.length < maxBatch) {
      const next = receiveMessageOnPort(line) as { message: Call } | undefined
      if (!next) break
      calls.push(next.message)
    }
    let replies: Reply[] = []
    try {
      around(() => {
        replies = calls.map(({ id, method, args }) => toReply(id, () => findHandler(handlers, method)(...args)))
      })
    } catch (error) {
      replies = calls.map(({ id }) => ({ id, error: remoteError(error) }))
    }
    line.postMessage(replies)
  })
}

function findHandler(handlers: Handlers, method: string): (...args: readonly unknown[]) => unknown {
  // The two sides agree on the arguments of each method, as with any call to another process.
  const handler = handlers[method] as ((...args: readonly unknown[]) => unknown) | undefined
  if (handler) return handler
  if (method === 'close') return () => undefined
  throw new Error(`no handler ${method}`)
}

/** Where the code that begins to serve gets its calls from, and the data that it was started with. */
interface Place {
  readonly line: MessagePort
  readonly data: unknown
}

/** Of the code that a shared thread is loading; undefined in a thread of its own. */
let shared: Place | undefined

/** In a shared thread: loads code, which serves `line`. One at a time. */
export async function loadServed(file: string, asked: Place): Promise<void> {
  shared = asked
  try {
    await import(file)
  } finally {
    shared = undefined
  }
}

function place(): Place {
  if (shared) return shared
  if (!parentPort) throw new Error('not in a worker thread')
  return { line: parentPort, data: workerData }
}

/** The data that the code was started with. Call it while the code is loaded. */
export function workerInput<T>(): T {
  return place().data as T
}
