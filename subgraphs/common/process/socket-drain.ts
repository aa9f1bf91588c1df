import { type ExecutionResult, GraphQLError } from 'graphql'
import type { WebSocket } from 'ws'
import { ServiceUnavailable } from '../errors.ts'
import { endableIterator } from './endable-iterator.ts'

/** How often a draining server looks which sockets have nothing under way any more. */
const LOOK_MS = 25
/** Close code "going away". */
export const ORDERLY_CLOSE = 1001

/** What graphql-ws keeps of one socket. */
interface SocketContext {
  readonly extra: { readonly socket: WebSocket }
  /** Operations under way, the last message of each included. */
  readonly subscriptions: Readonly<Record<string, unknown>>
}

/**
 * How a server that stops, or has not come up yet, lets its clients on graphql-ws send elsewhere what it has not begun. It refuses each new operation with an error that
 * says so, and closes a socket with 1001 once nothing is under way on it; what takes too long is ended with an error before that. So an
 * operation that had no answer when its socket was closed by 1001 was never begun.
 */
export class SocketDrain {
  readonly #contexts = new Set<SocketContext>()
  readonly #interrupts = new Set<() => void>()
  #takesOn = false

  /** @param opened the server can do nothing before. Default: it can from the start. */
  constructor(opened?: Promise<unknown>) {
    if (!opened) this.#takesOn = true
    opened?.then(
      () => {
        this.#takesOn = true
      },
      () => undefined,
    )
  }

  /** False: new sockets are to be closed with 1001, and new operations refused with `refusal()`. */
  get takesOn(): boolean {
    return this.#takesOn
  }

  opened(context: SocketContext): void {
    this.#contexts.add(context)
  }

  closed(context: SocketContext): void {
    this.#contexts.delete(context)
  }

  /** The results of an operation, with the failure as the last one when `end()` comes first. */
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
    this.#takesOn = false
    while (this.#contexts.size > 0) {
      for (const { extra, subscriptions } of this.#contexts) {
        if (Object.keys(subscriptions).length === 0) extra.socket.close(ORDERLY_CLOSE, 'Going away')
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }

  /** Ends what is under way. */
  end(): void {
    for (const interrupt of this.#interrupts) interrupt()
  }
}

/** The answer to a new operation at a server that takes on none: it was not begun. */
export function refusal(): readonly GraphQLError[] {
  const { message, extensions } = new EndedByRestart()
  return [new GraphQLError(message, { extensions: { ...extensions, notBegun: true } })]
}

/** The end of an operation for which a server cannot wait any longer. */
export class EndedByRestart extends ServiceUnavailable {
  constructor() {
    super('The service, which restarts,')
  }
}

/** True for the errors of a refused operation. */
export function isRefusal(errors: unknown): boolean {
  return Array.isArray(errors) && errors[0]?.extensions?.notBegun === true
}
