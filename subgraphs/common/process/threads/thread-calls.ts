/** The part of an error that crosses threads. `data` is the error's own `data`, if it had one. */
interface RemoteError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly data?: unknown
}

/** The result of a call, or its error, on its way to the caller's thread. */
export type Reply = { readonly value: unknown } | { readonly error: RemoteError }

/** A call of a method of one open file, such as a database. A thread may have several files open. */
export interface FileCall {
  /** The path of the file. */
  readonly file: string
  readonly method: string
  readonly args: readonly unknown[]
}

/** What a thread has for one open file: the functions that calls run, by method. */
interface FileService {
  // The two sides agree on the arguments of each method, as in any call to another process.
  readonly handlers: Readonly<Record<string, (...args: never[]) => unknown>>
  /** Calls that arrive together run in one batch. Default: each runs alone. */
  readonly batch?: Batch
  readonly close: () => void
}

interface Batch {
  readonly maxCalls: number
  /** Calls `run`, for example in a transaction. If it throws, all calls of the batch fail. */
  around(run: () => void): void
}

function remoteError(error: unknown): RemoteError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: undefined }
  return { name: error.name, message: error.message, stack: error.stack, data: 'data' in error ? error.data : undefined }
}

/**
 * Returns the function that a thread's file exports as `call`. Errors that `run` throws reach the caller with their
 * names.
 */
export function answering<Task>(run: (task: Task) => unknown): (task: Task | undefined) => Promise<Reply> {
  return async (task) => {
    try {
      return { value: task === undefined ? undefined : await run(task) }
    } catch (error) {
      return { error: remoteError(error) }
    }
  }
}

interface Waiting {
  readonly run: () => unknown
  readonly settle: (reply: Reply) => void
}

/**
 * Returns the function that the file of a thread exports as `call`, for threads that have files open. The first call for
 * a file opens it with `open`. The method `close` closes a file after the calls before it.
 */
export function servingFiles(open: (file: string) => FileService): (call: FileCall) => Promise<Reply> {
  const services = new Map<string, { readonly service: FileService; readonly waiting: Waiting[] }>()
  return async ({ file, method, args }) => {
    try {
      const found = services.get(file) ?? { service: open(file), waiting: [] }
      services.set(file, found)
      const { batch, handlers, close } = found.service
      const run = method === 'close' ? () => undefined : () => findHandler(handlers, method)(...args)
      const reply = await (batch ? runInBatch(batch, found.waiting, run) : toReply(run))
      if (method === 'close') {
        services.delete(file)
        close()
      }
      return reply
    } catch (error) {
      return { error: remoteError(error) }
    }
  }
}

function findHandler(handlers: FileService['handlers'], method: string): (...args: readonly unknown[]) => unknown {
  const handler = handlers[method] as ((...args: readonly unknown[]) => unknown) | undefined
  if (!handler) throw new Error(`no handler ${method}`)
  return handler
}

function toReply(run: () => unknown): Reply {
  try {
    return { value: run() }
  } catch (error) {
    return { error: remoteError(error) }
  }
}

/** Waits for the calls that have arrived by now, and runs them as one batch. */
function runInBatch(batch: Batch, waiting: Waiting[], run: () => unknown): Promise<Reply> {
  return new Promise((settle) => {
    if (waiting.push({ run, settle }) === 1) setImmediate(runBatch, batch, waiting)
  })
}

function runBatch(batch: Batch, waiting: Waiting[]): void {
  const calls = waiting.splice(0, batch.maxCalls)
  if (waiting.length > 0) setImmediate(runBatch, batch, waiting)
  let replies: readonly Reply[] = []
  try {
    batch.around(() => {
      replies = calls.map(({ run }) => toReply(run))
    })
  } catch (error) {
    replies = calls.map(() => ({ error: remoteError(error) }))
  }
  for (const [i, { settle }] of calls.entries()) settle(replies[i]!)
}
