import type { IncomingHttpHeaders } from 'node:http'
import { Agent, DecoratorHandler, type Dispatcher, fetch, type RequestInit, type Response } from 'undici'
import { isAbort, KisError } from '../../../common/errors.ts'
import { NeverSent } from '../../ports/engines.ts'
import { type EngineErrors, isPacked } from '../vendor/engine-errors.ts'
import { JsonGauge, MAX_EVENT_PARTS, MAX_RESPONSE_PARTS } from '../vendor/json-gauge.ts'
import { KEEP_ALIVE_MS, MAX_CALLS, MAX_ERROR_BYTES, MAX_EVENT_LENGTH, type Timeouts } from '../vendor/limits.ts'
import { measureOpenEvent } from './open-event.ts'

/**
 * Ends the last line and event: the SDK waits for what follows a final CR, and for a blank line that some servers leave
 * out.
 */
const LAST_LINES = Buffer.from('\n\n')

export type Fetch = typeof globalThis.fetch

/**
 * The `fetch` that the SDK calls for one vendor. It has the service's timeouts, limits and errors, and neither follows
 * redirects nor retries.
 */
export class VendorFetch implements AsyncDisposable {
  readonly #agent: Agent
  readonly #timeouts: Timeouts
  readonly #errors: EngineErrors
  #calls = 0

  constructor(timeouts: Timeouts, errors: EngineErrors) {
    this.#agent = new Agent({
      connections: MAX_CALLS,
      pipelining: 1,
      allowH2: false,
      connect: { timeout: timeouts.connectMs },
      keepAliveTimeout: KEEP_ALIVE_MS,
      bodyTimeout: timeouts.bodyIdleMs,
    })
    this.#timeouts = timeouts
    this.#errors = errors
  }

  /**
   * Returns a `fetch` for responses of at most `maxBytes`. The function throws a `KisError` or the abort, and its
   * bodies fail with the same. An abort before anything was sent is a `NeverSent`.
   */
  createFetch({ isStream, maxBytes }: { readonly isStream: boolean; readonly maxBytes: number }): Fetch {
    const headersTimeout = isStream ? this.#timeouts.streamHeadersMs : this.#timeouts.headersMs
    const send = (input: string | URL, init: RequestInit) => this.#send(input, init, headersTimeout, maxBytes)
    // undici's `fetch` and Node's have different types; the SDK calls it with a URL and plain options only.
    return send as unknown as Fetch
  }

  async #send(input: string | URL, init: RequestInit, headersTimeout: number, maxBytes: number): Promise<globalThis.Response> {
    if (this.#calls >= MAX_CALLS) throw this.#errors.busy()
    this.#calls += 1
    let isOver = false
    const over = () => {
      if (!isOver) this.#calls -= 1
      isOver = true
    }
    let isSent = false
    const onSent = () => {
      isSent = true
    }
    const dispatcher = this.#agent.compose(
      (dispatch) => (options, handler) => dispatch({ ...options, headersTimeout }, observeSend(handler, onSent)),
    )
    try {
      const headers = { ...(init.headers as Record<string, string>), 'accept-encoding': 'identity' }
      const response = await fetch(input, { ...init, headers, dispatcher, redirect: 'manual' })
      if (!response.ok) throw this.#errors.ofResponse(response.status, toHeaders(response), await readStart(response, MAX_ERROR_BYTES))
      if (isPacked(toHeaders(response))) {
        await response.body?.cancel()
        throw this.#errors.packed()
      }
      const type = response.headers.get('content-type') ?? ''
      const body = response.body && this.#limited(response.body as ReadableStream<Uint8Array>, maxBytes, type, over)
      if (!body) over()
      return new globalThis.Response(body, { status: response.status, headers: [...response.headers] as [string, string][] })
    } catch (error) {
      over()
      if (init.signal?.aborted && !isSent) throw new NeverSent(init.signal.reason)
      throw this.#toError(error, false)
    }
  }

  /**
   * Returns the same bytes, within the limits, with the service's errors. The SDK would buffer an event that never
   * ends.
   */
  #limited(body: ReadableStream<Uint8Array>, maxBytes: number, type: string, onOver: () => void): ReadableStream<Uint8Array> {
    const openEvent = measureOpenEvent(type)
    const gauge = openGauge(type)
    const reader = body.getReader()
    let size = 0
    return new ReadableStream(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read()
            size += value?.length ?? 0
            if (size > maxBytes) throw this.#errors.tooLarge()
            if (value && openEvent(value) > MAX_EVENT_LENGTH) throw this.#errors.stopped('sent an event that is too long')
            if (value && gauge?.exceeds(value)) throw this.#errors.excessive()
            if (!done) return controller.enqueue(value)
            onOver()
            if (type.startsWith('text/event-stream')) controller.enqueue(LAST_LINES)
            controller.close()
          } catch (error) {
            onOver()
            controller.error(this.#toError(error, true))
            void reader.cancel().catch(() => undefined)
          }
        },
        async cancel(reason) {
          onOver()
          await reader.cancel(reason)
        },
      },
      // Reads nothing before the reader requests it.
      { highWaterMark: 0 },
    )
  }

  #toError(error: unknown, isAnswering: boolean): unknown {
    if (error instanceof KisError || isAbort(error)) return error
    // `fetch` wraps the real failure in a `TypeError`.
    return this.#errors.ofConnection((error instanceof TypeError && error.cause) || error, isAnswering)
  }

  /** Aborts running calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy()
  }
}

/** Wraps a handler to report when its request has a connection and starts to be sent. */
function observeSend(handler: Dispatcher.DispatchHandler, onSent: () => void): Dispatcher.DispatchHandler {
  return Object.assign(new DecoratorHandler(handler) as Dispatcher.DispatchHandler, {
    onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>) {
      onSent()
      handler.onRequestStart?.(...args)
    },
  })
}

/** Frames of AWS have binary bytes between their JSON that may look like JSON. Only their length is limited. */
function openGauge(type: string): JsonGauge | null {
  if (type.startsWith('application/vnd.amazon.eventstream')) return null
  return new JsonGauge(type.startsWith('text/event-stream') ? MAX_EVENT_PARTS : MAX_RESPONSE_PARTS)
}

function toHeaders(response: Response): IncomingHttpHeaders {
  return Object.fromEntries(response.headers)
}

/** The first `maxBytes` of the body. The rest is not read. */
async function readStart({ body }: Response, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of body ?? []) {
    pieces.push(piece as Uint8Array)
    size += (piece as Uint8Array).length
    if (size >= maxBytes) break
  }
  return Buffer.concat(pieces).subarray(0, maxBytes)
}
