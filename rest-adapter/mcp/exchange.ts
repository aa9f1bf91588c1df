import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCErrorResponse, JSONRPCMessage, JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js'
import { cut } from '../../subgraphs/common/errors.ts'
import { type Call, ok, type RouteResponse } from '../http/route.ts'
import type { RestEventStream } from '../http/sse.ts'

/**
 * Notifications that a client has not read. A stalled client is disconnected long before, and a run has not many more.
 */
const MAX_WAITING = 1_000

/**
 * The transport of one request and everything sent until its response. Its server lives as long as the request. The
 * answer is JSON, unless something is sent before the response.
 */
export class Exchange implements Transport {
  onmessage?: Transport['onmessage']
  onclose?: () => void
  /** Resolves with the response, or without one if there is to be none; undefined: it was streamed. */
  readonly response: Promise<RouteResponse | undefined>
  readonly #call: Call
  readonly #resolve: (response: RouteResponse | undefined) => void
  #stream: RestEventStream | undefined
  #sending: Promise<void> = Promise.resolve()
  #waiting = 0
  #isOver = false

  constructor(call: Call) {
    const { promise, resolve } = Promise.withResolvers<RouteResponse | undefined>()
    this.response = promise
    this.#resolve = resolve
    this.#call = call
  }

  async start(): Promise<void> {}

  receive(request: JSONRPCRequest): void {
    this.onmessage?.(request)
  }

  /**
   * Switches to server-sent events, so that the open connection does not look dead. Not for clients that accept only
   * JSON.
   */
  stream(): void {
    if (this.#stream || !/\btext\/event-stream\b|\*\/\*/.test(this.#call.headers.accept ?? '')) return
    this.#stream = this.#call.eventStream()
    void this.#send()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isOver) return
    const isResponse = !('method' in message)
    if (!isResponse) {
      if (this.#stream && this.#waiting < MAX_WAITING) await this.#send(JSON.stringify(message))
      return
    }
    this.#isOver = true
    const response = 'error' in message ? withShortError(message) : message
    if (!this.#stream) return this.#resolve(ok(response))
    await this.#send(JSON.stringify(response))
    this.#end()
  }

  /** Ends the exchange without a response, as for a cancelled request. */
  async close(): Promise<void> {
    if (!this.#isOver) {
      this.#isOver = true
      if (this.#stream) this.#end()
      else this.#resolve({ status: 202, body: '' })
    }
    this.onclose?.()
  }

  /** Sends one after the other, each when the client has room for it. */
  #send(...data: readonly string[]): Promise<void> {
    this.#waiting += 1
    this.#sending = this.#sending.then(async () => {
      await this.#stream?.send(...data)
      this.#waiting -= 1
    })
    return this.#sending
  }

  #end(): void {
    this.#stream?.end()
    this.#resolve(undefined)
  }
}

/** The SDK's errors tell all that is wrong in a request. */
function withShortError(response: JSONRPCErrorResponse): JSONRPCErrorResponse {
  const { error } = response
  return { ...response, error: { ...error, message: cut(error.message) } }
}
