import type { IncomingHttpHeaders } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { NeverSent } from '../../ports/engines.ts'
import { type EngineErrors, findVendorError, isPacked } from './engine-errors.ts'
import { JsonGauge, MAX_RESPONSE_PARTS } from './json-gauge.ts'
import { KEEP_ALIVE_MS, MAX_CALLS, MAX_ERROR_BYTES, type Timeouts } from './limits.ts'

/** Receives one response, piece by piece. Exactly one of `end` and `fail` comes last. */
export interface Receiver {
  start(status: number, headers: IncomingHttpHeaders): void
  data(bytes: Buffer): void
  end(): void
  fail(error: unknown): void
}

/** A request's body: JSON as text, or bytes with their content type. */
type RequestBody = string | { readonly bytes: Uint8Array; readonly contentType: string }

export interface UpstreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** One vendor's server. Reuses connections, adds the key, and neither follows redirects nor retries. */
export class Upstream implements AsyncDisposable {
  readonly #pool: Pool
  readonly #basePath: string
  readonly #query: string
  readonly #headers: readonly string[]
  readonly #timeouts: Timeouts
  readonly #errors: EngineErrors
  #calls = 0

  /** `keyHeaders`: name and value of the header with the key, if there is one. */
  constructor(baseUrl: URL, keyHeaders: readonly string[], timeouts: Timeouts, errors: EngineErrors) {
    this.#pool = new Pool(baseUrl.origin, {
      connections: MAX_CALLS,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: timeouts.connectMs },
      keepAliveTimeout: KEEP_ALIVE_MS,
    })
    this.#basePath = baseUrl.pathname.replace(/\/+$/, '')
    // Azure needs `?api-version=…` after every path.
    this.#query = baseUrl.search
    this.#headers = [
      // Decompressing costs more CPU than the rest of the work on a chunk.
      'accept-encoding',
      'identity',
      ...keyHeaders,
    ]
    this.#timeouts = timeouts
    this.#errors = errors
  }

  /** The longest wait between two pieces of a response, in milliseconds. */
  get idleMs(): number {
    return this.#timeouts.bodyIdleMs
  }

  /** Posts the body to `<base>/<route>`. */
  send(route: string, body: RequestBody, requestId: string, streamed: boolean, receiver: Receiver): Exchange {
    const exchange = new Exchange(receiver, this.#errors, () => {
      this.#calls -= 1
    })
    if (this.#calls >= MAX_CALLS) {
      queueMicrotask(() => receiver.fail(this.#errors.busy()))
      return exchange
    }
    this.#calls += 1
    const isJson = typeof body === 'string'
    const accept = streamed ? 'text/event-stream' : 'application/json'
    const contentType = isJson ? 'application/json' : body.contentType
    this.#pool.dispatch(
      {
        method: 'POST',
        path: `${this.#basePath}/${route}${this.#query}`,
        headers: [...this.#headers, 'content-type', contentType, 'accept', accept, 'x-client-request-id', requestId],
        body: isJson ? body : body.bytes,
        headersTimeout: streamed ? this.#timeouts.streamHeadersMs : this.#timeouts.headersMs,
        bodyTimeout: this.#timeouts.bodyIdleMs,
      },
      exchange,
    )
    return exchange
  }

  /**
   * Returns the whole response, or only the first `MAX_ERROR_BYTES` if its status is not 200.
   * @throws {NeverSent} the signal has aborted before anything was sent
   */
  post(route: string, body: RequestBody, requestId: string, maxBytes: number, signal: AbortSignal): Promise<UpstreamResponse> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(new NeverSent(signal.reason))
      let status = 0
      let headers: IncomingHttpHeaders = {}
      let size = 0
      const pieces: Buffer[] = []
      const gauge = new JsonGauge(MAX_RESPONSE_PARTS)
      const onAbort = () => {
        exchange.abort()
        reject(exchange.whyAborted(signal))
      }
      const settle = () => signal.removeEventListener('abort', onAbort)
      const succeed = () => {
        settle()
        resolve({ status, headers, body: pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces) })
      }
      const exchange = this.send(route, body, requestId, false, {
        start(responseStatus, responseHeaders) {
          status = responseStatus
          headers = responseHeaders
        },
        data: (bytes) => {
          size += bytes.length
          pieces.push(bytes)
          if (status !== 200 && size > MAX_ERROR_BYTES) {
            succeed()
            exchange.abort()
          } else if (size > maxBytes) {
            throw this.#errors.tooLarge()
          } else if (status === 200 && gauge.exceeds(bytes)) {
            throw this.#errors.excessive()
          }
        },
        end: succeed,
        fail(error) {
          settle()
          reject(error)
        },
      })
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Aborts running calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy()
  }
}

/**
 * One request and its response, as undici's handler. An error that the receiver throws ends the exchange, and becomes
 * its failure.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver
  readonly #errors: EngineErrors
  readonly #onOver: () => void
  #controller: Dispatcher.DispatchController | undefined
  #answering = false
  #aborted = false
  #over = false

  constructor(receiver: Receiver, errors: EngineErrors, onOver: () => void) {
    this.#receiver = receiver
    this.#errors = errors
    this.#onOver = onOver
  }

  /** True once the response has ended or was aborted. */
  get over(): boolean {
    return this.#over
  }

  /** Returns the error for the caller of an exchange after `signal` has aborted. It shows whether anything was sent. */
  whyAborted(signal: AbortSignal): unknown {
    return this.#controller ? signal.reason : new NeverSent(signal.reason)
  }

  /** Closes the connection at once. The receiver is not called any more. */
  abort(): void {
    this.#aborted = true
    if (!this.#over) this.#controller?.abort(new Error('the caller has disconnected'))
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#aborted) controller.abort(new Error('the caller has disconnected'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational responses (103 Early Hints) precede the final one.
    if (status < 200) return
    this.#answering = true
    if (this.#aborted) return
    if (status === 200 && isPacked(headers)) throw this.#errors.packed()
    this.#receiver.start(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (!this.#aborted) this.#receiver.data(bytes)
  }

  onResponseEnd(): void {
    this.#finish()
    if (!this.#aborted) this.#receiver.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish()
    if (!this.#aborted) this.#receiver.fail(this.#errors.ofConnection(error, this.#answering))
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#onOver()
  }
}

/**
 * Returns the JSON of a response.
 * @throws {KisError} the vendor's error, also one under status 200; or the response is not JSON
 */
export function parseResponse({ status, headers, body }: UpstreamResponse, errors: EngineErrors): unknown {
  if (status !== 200) throw errors.ofResponse(status, headers, body)
  let parsed: unknown
  try {
    parsed = JSON.parse(body.toString())
  } catch (cause) {
    throw errors.invalidResponse('returned a response that is not JSON', cause)
  }
  const error = typeof parsed === 'object' && parsed !== null ? findVendorError(parsed) : null
  if (error) throw errors.ofErrorObject(error)
  return parsed
}
