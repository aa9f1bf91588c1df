import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import type { Clock } from '../process/clock.ts'

/** Proxies and clients close connections that are silent for 30 to 60 s. */
const KEEP_ALIVE_MS = 15_000

/** A client that reads nothing for this long counts as disconnected, so that it cannot keep a vendor's work running. */
const STALL_MS = 30_000

const ROOM = Promise.resolve()
/** The reason of an abort that no code reads: without a reason, an exception with its stack is created. */
const NO_MORE = 'no more'

/**
 * Server-sent events as the response to a request. Headers are sent with the first event, so that an earlier failure
 * can still be an ordinary response.
 */
export class EventStream implements Disposable {
  readonly #reply: FastifyReply
  readonly #clock: Clock
  readonly #beforeHeaders: () => void
  readonly #closed = new AbortController()
  #lastWriteMs = 0

  constructor(reply: FastifyReply, clock: Clock, beforeHeaders: () => void = () => undefined) {
    this.#reply = reply
    this.#clock = clock
    this.#beforeHeaders = beforeHeaders
  }

  get isOpen(): boolean {
    return this.#reply.raw.headersSent
  }

  /** Has no effect once the stream is open. */
  addHeaders(headers: Readonly<Record<string, string>>): void {
    if (!this.isOpen) this.#reply.headers(headers)
  }

  /**
   * Writes whole events. Resolves when the client can receive more, or has disconnected. An empty text opens the
   * stream.
   */
  write(text: string): Promise<void> {
    if (!this.isOpen) this.#open()
    const { raw } = this.#reply
    // A source that never waits would otherwise block the notification that the client has disconnected.
    if (raw.destroyed) return setImmediate()
    this.#lastWriteMs = this.#clock.now().getTime()
    return raw.write(text) ? ROOM : this.#room(raw)
  }

  /** Resolves when a slow client can receive more, or has disconnected. */
  async #room(raw: ServerResponse): Promise<void> {
    const done = new AbortController()
    const { signal } = done
    const stalled = this.#clock.sleep(STALL_MS, signal).then(() => raw.destroy())
    await Promise.race([once(raw, 'drain', { signal }), once(raw, 'close', { signal }), stalled]).catch(() => raw.destroy())
    done.abort(NO_MORE)
  }

  end(): void {
    this[Symbol.dispose]()
    this.#reply.raw.end()
  }

  [Symbol.dispose](): void {
    this.#closed.abort(NO_MORE)
  }

  #open(): void {
    const reply = this.#reply
    this.#beforeHeaders()
    reply.hijack()
    reply.raw.writeHead(200, {
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      // Otherwise nginx buffers the response.
      'x-accel-buffering': 'no',
    })
    void this.#keepAlive()
  }

  async #keepAlive(): Promise<void> {
    const { signal } = this.#closed
    for (let waitMs = KEEP_ALIVE_MS; !signal.aborted; ) {
      await this.#clock.sleep(waitMs, signal).catch(() => undefined)
      const silentMs = this.#clock.now().getTime() - this.#lastWriteMs
      // A client that cannot receive more is slow, not silent.
      if (silentMs >= KEEP_ALIVE_MS && !signal.aborted && !this.#reply.raw.writableNeedDrain) await this.write(': keep-alive\n\n')
      waitMs = silentMs >= KEEP_ALIVE_MS ? KEEP_ALIVE_MS : KEEP_ALIVE_MS - silentMs
    }
  }
}
