import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Asked, Failed } from './shared-thread-serve.ts'
import { revived } from './worker-rpc.ts'

const FILE = new URL('./shared-thread-serve.ts', import.meta.url)

/** What one user has of a shared thread. */
export interface Served {
  readonly line: MessagePort
  /** The last user's leaving ends the thread. */
  leave(): Promise<void>
}

/**
 * A thread that serves several users, each with code and data of its own. It runs while it has users. What takes long
 * for one of them delays the others; a thread each would take ten megabytes for its heap.
 */
export class SharedThread {
  readonly #name: string
  /** What to call when a user is served no more. */
  readonly #users = new Map<number, (error: unknown) => void>()
  /** How often the thread has loaded a file. */
  readonly #loaded = new Map<string, number>()
  #nextUser = 1
  #worker: Worker | undefined

  constructor(name: string) {
    this.#name = name
  }

  /** Has the thread load `file` for `data`. Calls `end` if it cannot, or when the thread ends before the user leaves. */
  serve(file: URL, data: unknown, end: (error: unknown) => void): Served {
    this.#worker ??= this.#start()
    const user = this.#nextUser++
    const { port1: own, port2: line } = new MessageChannel()
    this.#users.set(user, end)
    this.#worker.postMessage({ user, file: this.#nameInstance(file), data, line } satisfies Asked, [line])
    return {
      line: own,
      leave: async () => {
        own.close()
        if (this.#users.delete(user) && this.#users.size === 0) await this.#forget()?.terminate()
      },
    }
  }

  #start(): Worker {
    const worker = new Worker(FILE, { name: this.#name })
    const end = (error: unknown) => {
      if (this.#worker !== worker) return
      const users = [...this.#users.values()]
      this.#users.clear()
      this.#forget()
      for (const tell of users) tell(error)
    }
    worker.on('message', ({ user, failed }: Failed) => {
      const tell = this.#users.get(user)
      this.#users.delete(user)
      if (this.#users.size === 0) void this.#forget()?.terminate()
      tell?.(revived(failed))
    })
    worker.on('error', end)
    worker.on('exit', (code) => end(new Error(`the thread ${this.#name} ended with code ${code}`)))
    worker.unref()
    return worker
  }

  #forget(): Worker | undefined {
    const worker = this.#worker
    this.#worker = undefined
    this.#loaded.clear()
    return worker
  }

  /** Node loads a file once for each query of its address, with variables of its own. */
  #nameInstance({ href }: URL): string {
    const before = this.#loaded.get(href) ?? 0
    this.#loaded.set(href, before + 1)
    return before === 0 ? href : `${href}?${before}`
  }
}
