import { type ExecutionResult, GraphQLError } from 'graphql'
import type { WebSocket } from 'ws'
import { ServiceUnavailable } from '../errors.ts'
import { endableIterator } from './endable-iterator.ts'

/** How often a draining server checks which sockets are idle. */
const POLL_MS = 25
/** Close code "going away". */
export const ORDERLY_CLOSE = 1001

/** What graphql-ws keeps about one socket. */
interface SocketContext {
  readonly extra: { readonly socket: WebSocket }
  /** Running operations, including their last message. */
  readonly subscriptions: Readonly<Record<string, unknown>>
}

/**
 * Lets the graphql-ws clients of a server that is stopping or not open yet send new operations elsewhere. The server
 * refuses each new operation with an error that says so. It closes a socket with 1001 once it is idle; an operation
 * that takes too long is ended with an error before that. So an operation without an answer on a socket that was closed
 * with 1001 was never begun.
 */
export class SocketDrain {
  readonly #contexts = new Set<SocketContext>()
  readonly #interrupts = new Set<() => void>()
  #isAccepting = false

  /** @param opened until it resolves, the server refuses operations; default: it accepts them from the start */
  constructor(opened?: Promise<unknown>) {
    if (!opened) this.#isAccepting = true
    opened?.then(
      () => {
        this.#isAccepting = true
      },
      () => undefined,
    )
  }

  /** False: close new sockets with 1001, and refuse new operations with `refusal()`. */
  get isAccepting(): boolean {
    return this.#isAccepting
  }

  opened(context: SocketContext): void {
    this.#contexts.add(context)
  }

  closed(context: SocketContext): void {
    this.#contexts.delete(context)
  }

  /** The results of an operation. When `end()` is called first, the failure is the last result. */
  results(
    source: AsyncIterator<ExecutionResult, undefined>,
    failure: () => ExecutionResult,
  ): AsyncIterableIterator<ExecutionResult, undefined> {
    let isOver = false
    return endableIterator<ExecutionResult>(
      async () => {
        if (isOver) return { done: true, value: undefined }
        return new Promise((resolve, reject) => {
          const interrupt = () => {
            isOver = true
            resolve({ done: false, value: failure() })
          }
          this.#interrupts.add(interrupt)
          source
            .next()
            .then(resolve, reject)
            .finally(() => this.#interrupts.delete(interrupt))
        })
      },
      async () => {
        await source.return?.()
      },
    )
  }

  /** Resolves when every socket is closed. */
  async drain(): Promise<void> {
    this.#isAccepting = false
    while (this.#contexts.size > 0) {
      for (const { extra, subscriptions } of this.#contexts) {
        if (Object.keys(subscriptions).length === 0) extra.socket.close(ORDERLY_CLOSE, 'Going away')
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }

  /** Ends all running operations. */
  end(): void {
    for (const interrupt of this.#interrupts) interrupt()
  }
}

/** The answer of a server that accepts no operations. It says that the operation was not begun. */
export function refusal(): readonly GraphQLError[] {
  const { message, extensions } = new EndedByRestart()
  return [new GraphQLError(message, { extensions: { ...extensions, notBegun: true } })]
}

/** Ends an operation for which a stopping server cannot wait any longer. */
export class EndedByRestart extends ServiceUnavailable {
  constructor() {
    super('The service', { why: 'it is restarting' })
  }
}

/** True for the errors of a refused operation. */
export function isRefusal(errors: unknown): boolean {
  return Array.isArray(errors) && errors[0]?.extensions?.notBegun === true
}
