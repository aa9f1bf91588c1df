import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/**
 * Runs a script of this folder in its own process, so that its CPU does not count. The process replies to one message
 * at a time.
 */
export class Child implements AsyncDisposable {
  readonly #process: ChildProcess

  /** @param execArgv flags of Node */
  constructor(script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = process.env, execArgv: readonly string[] = []) {
    const options: ForkOptions = { env, execArgv: [...execArgv], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }
    this.#process = fork(fileURLToPath(new URL(script, import.meta.url)), [...args], options)
  }

  get pid(): number {
    return this.#process.pid!
  }

  /**
   * Returns the next message of the child.
   * @throws {Error} the child ended first
   */
  async nextMessage<Message>(): Promise<Message> {
    const over = new AbortController()
    try {
      const ended = once(this.#process, 'exit', over).then(() => Promise.reject(new Error('a process of the measurement has ended')))
      const [message] = await Promise.race([once(this.#process, 'message', over), ended])
      return message as Message
    } finally {
      over.abort()
    }
  }

  request<Message>(question: object): Promise<Message> {
    const reply = this.nextMessage<Message>()
    this.#process.send(question)
    return reply
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill()
    await once(this.#process, 'exit')
  }
}
