import { ServiceUnavailable } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { Log } from '../../../common/process/log.ts'
import { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'
import type { Asked, Finished, Halfway } from './second-half.ts'
import type { SecondInput } from './second-thread.ts'
import { StartLimit } from './start-limit.ts'

const WHAT = 'the second half of the embedded model'

/** The thread with the second half of the layers. If it has died, the next call starts it again. */
export class SecondThread implements AsyncDisposable {
  readonly #input: SecondInput
  readonly #log: Log
  readonly #file: URL
  readonly #starts = new StartLimit(systemClock)
  #client: WorkerClient | undefined
  #closed = false

  /** `file` is the thread's code. */
  constructor(file: URL, input: SecondInput, log: Log) {
    this.#file = file
    this.#input = input
    this.#log = log
  }

  /** Waits until the thread has loaded its half. Starts it if it does not run. */
  async ready(): Promise<void> {
    await this.#running().call('ready', [])
  }

  /**
   * @throws {ServiceUnavailable} the thread has died; the call may be repeated with the states computed anew.
   */
  async finish(halfway: Halfway, asked: Asked): Promise<Finished> {
    return this.#running().call<Finished>('finish', [halfway, asked])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    await this.#client?.[Symbol.asyncDispose]()
  }

  #running(): WorkerClient {
    if (this.#client) return this.#client
    if (this.#closed || !this.#starts.count()) throw new ServiceUnavailable(WHAT)
    const forget = () => {
      if (this.#client === client) this.#client = undefined
    }
    const client = new WorkerClient(this.#file, WHAT, this.#input, {
      onExit: (error) => {
        forget()
        if (!this.#closed) this.#log.error({ err: error }, 'the thread with the second half of the embedded model has died')
      },
    })
    this.#client = client
    client.call('ready', []).catch(async () => {
      // The files may be repaired: the next call tries again.
      forget()
      await client[Symbol.asyncDispose]()
    })
    return client
  }
}
