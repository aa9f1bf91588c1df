import type { QueryPlan } from '@apollo/query-planner'
import { WorkerClient } from '../../subgraphs/common/process/worker-rpc.ts'
import type { Prepared } from '../documents.ts'

/** Plans are kept by operation, so a thread that has planned all of them rests. It takes some 60 MB. */
const IDLE_MS = 300_000

/**
 * Apollo's planner in a thread of its own: loading it takes up to a second, and the plan of a large operation a tenth.
 * The thread starts with the first plan, and ends when none was asked for in five minutes.
 */
export class PlannerClient implements AsyncDisposable {
  readonly #sdl: string
  #thread: WorkerClient | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(sdl: string) {
    this.#sdl = sdl
  }

  /** @throws {ServiceUnavailable} the thread has ended */
  async plan({ text, operationName }: Pick<Prepared, 'text' | 'operationName'>): Promise<QueryPlan> {
    this.#thread ??= this.#start()
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), IDLE_MS).unref()
    return this.#thread.call<QueryPlan>('plan', [text, operationName])
  }

  #start(): WorkerClient {
    const file = new URL('./planner-thread.ts', import.meta.url)
    const thread = new WorkerClient(file, 'The query planner', this.#sdl, {
      onExit: () => {
        if (this.#thread === thread) this.#thread = undefined
      },
    })
    return thread
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle)
    const thread = this.#thread
    this.#thread = undefined
    await thread?.[Symbol.asyncDispose]()
  }
}
