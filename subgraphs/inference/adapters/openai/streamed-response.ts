import type { IncomingHttpHeaders } from 'node:http'
import { KisError } from '../../../common/errors.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import { MAX_STREAM_BYTES } from '../../domain/engines/response-limits.ts'
import { NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { type EngineErrors, findVendorError } from '../vendor/engine-errors.ts'
import { IdleWatch } from '../vendor/idle-watch.ts'
import { isExcessiveEvent } from '../vendor/json-gauge.ts'
import { MAX_DRAIN_MS, MAX_ERROR_BYTES, MAX_EVENT_LENGTH, MAX_WAITING_BYTES } from '../vendor/limits.ts'
import type { Exchange, Receiver } from '../vendor/upstream.ts'
import { EventStreamParser, EventTooLong } from './event-stream.ts'
import type { Completeness } from './stream-completeness.ts'

/** A streamed response: receives events as the socket delivers them, and passes them to the reader on request. */
export class StreamedResponse implements Receiver {
  readonly #errors: EngineErrors
  readonly #redactFacts: (event: ProtocolObject) => ProtocolObject
  readonly #completeness: Completeness
  readonly #idleMs: number
  readonly #parser = new EventStreamParser((data, name) => this.#receive(data, name), MAX_EVENT_LENGTH)
  readonly #header = Promise.withResolvers<void>()
  #exchange: Exchange | undefined
  /** Chunks that have arrived since the reader's last read, and about how many bytes they take. */
  #arrived: ProtocolObject[] = []
  #waitingBytes = 0
  #totalBytes = 0
  #outcome: { readonly error?: unknown } | undefined
  #wakeReader: (() => void) | undefined
  #idle: IdleWatch | undefined
  /** A response that is not an event stream. */
  #other: { readonly status: number; readonly headers: IncomingHttpHeaders; body: Buffer } | undefined

  /** `idleMs`: the longest wait for the next event. */
  constructor(completeness: Completeness, errors: EngineErrors, redactFacts: (event: ProtocolObject) => ProtocolObject, idleMs: number) {
    this.#errors = errors
    this.#redactFacts = redactFacts
    this.#completeness = completeness
    this.#idleMs = idleMs
  }

  /**
   * Resolves with the iterator once the response's header has arrived. Rejects on an error response.
   * @throws {NeverSent} the signal has aborted before anything was sent
   */
  async open(send: (receiver: Receiver) => Exchange, signal: AbortSignal): Promise<AsyncIterableIterator<readonly ProtocolObject[]>> {
    if (signal.aborted) throw new NeverSent(signal.reason)
    const exchange = send(this)
    this.#exchange = exchange
    const onAbort = () => {
      exchange.abort()
      this.#header.reject(exchange.whyAborted(signal))
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await this.#header.promise
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
    this.#idle = new IdleWatch(this.#idleMs, () => this.#break(this.#errors.silent()))
    return endableIterator(
      () => this.#pull(),
      () => this.#release(exchange),
      signal,
    )
  }

  start(status: number, headers: IncomingHttpHeaders): void {
    const isJson = /\bjson\b/i.test(String(headers['content-type'] ?? ''))
    if (status === 200 && !isJson) this.#header.resolve()
    else this.#other = { status, headers, body: Buffer.alloc(0) }
  }

  data(bytes: Buffer): void {
    if (this.#other) {
      this.#other.body = Buffer.concat([this.#other.body, bytes])
      if (this.#other.body.length > MAX_ERROR_BYTES) this.#refuse(this.#other)
    } else if (!this.#outcome) {
      this.#totalBytes += bytes.length
      this.#waitingBytes += bytes.length
      this.#parse(() => this.#parser.push(bytes))
      if (this.#totalBytes > MAX_STREAM_BYTES) this.#break(this.#errors.tooLarge())
      if (this.#arrived.length === 0) return
      this.#wake()
      // The reader's next read resumes the exchange. If only an unfinished event waits, no read would come.
      if (this.#waitingBytes > MAX_WAITING_BYTES) this.#exchange?.pause()
    }
  }

  end(): void {
    if (this.#other) {
      this.#refuse(this.#other)
    } else if (!this.#outcome) {
      this.#parse(() => this.#parser.end())
      // Some vendors end without `[DONE]`. If nothing is missing, the response was not cut off.
      if (this.#completeness.complete) this.#finish({})
      else this.#break(this.#errors.invalidResponse('broke off its response'))
    }
  }

  fail(error: unknown): void {
    this.#header.reject(error)
    this.#finish({ error })
  }

  /**
   * Receives one event.
   * @throws {KisError} the event is not a chunk, or is an error of the vendor
   */
  #receive(data: string, name: string): void {
    if (this.#outcome) return
    if (data === '[DONE]') {
      this.#finish({})
      return
    }
    if (isExcessiveEvent(data)) throw this.#errors.excessive()
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch (cause) {
      throw this.#errors.invalidResponse('sent a malformed chunk', cause)
    }
    if (typeof chunk !== 'object' || chunk === null || Array.isArray(chunk)) throw this.#errors.invalidResponse('sent a malformed chunk')
    const error = name === 'error' ? chunk : findVendorError(chunk)
    if (error) throw this.#errors.ofErrorObject(error)
    this.#completeness.see(chunk as ProtocolObject)
    this.#arrived.push(this.#redactFacts(chunk as ProtocolObject))
    if (this.#completeness.over) this.#finish({})
  }

  #parse(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (error instanceof EventTooLong) this.#break(this.#errors.stopped('sent an event that is too long', error))
      else this.#break(error instanceof KisError ? error : this.#errors.invalidResponse('sent a broken event stream', error))
    }
  }

  /** Stops the vendor. The reader gets the chunks that have arrived, then the error. */
  #break(error: KisError): void {
    this.#finish({ error })
    this.#exchange?.abort()
  }

  #finish(outcome: { readonly error?: unknown }): void {
    this.#outcome ??= outcome
    this.#wake()
  }

  #wake(): void {
    this.#wakeReader?.()
    this.#wakeReader = undefined
  }

  #pull(): Promise<IteratorResult<readonly ProtocolObject[], undefined>> {
    if (this.#arrived.length > 0 || this.#outcome) return new Promise((resolve) => resolve(this.#nextItem()))
    this.#idle?.waits()
    return new Promise<void>(this.#wait).then(this.#nextItem)
  }

  readonly #wait = (resolve: () => void) => {
    this.#wakeReader = resolve
  }

  /**
   * Everything from one read of the socket is passed to `data` before the woken reader runs, so it becomes one item.
   */
  readonly #nextItem = (): IteratorResult<readonly ProtocolObject[], undefined> => {
    this.#idle?.has()
    if (this.#arrived.length > 0) {
      const value = this.#arrived
      this.#arrived = []
      this.#waitingBytes = 0
      this.#exchange?.resume()
      return { done: false, value }
    }
    if (this.#outcome && 'error' in this.#outcome) throw this.#outcome.error
    return { done: true, value: undefined }
  }

  /** Aborts the response, unless it has ended well: then its connection, once drained, serves the next call. */
  #release(exchange: Exchange): void {
    this.#idle?.stop()
    const endedWell = this.#outcome !== undefined && !('error' in this.#outcome)
    if (!endedWell) exchange.abort()
    else if (!exchange.over) setTimeout(() => exchange.abort(), MAX_DRAIN_MS).unref()
    this.#finish({})
    this.#arrived = []
    exchange.resume()
  }

  #refuse({ status, headers, body }: { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }): void {
    this.#header.reject(status === 200 ? this.#errors.notAStream(body) : this.#errors.ofResponse(status, headers, body))
    this.#exchange?.abort()
  }
}
