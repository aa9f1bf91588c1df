import type { ExecutionResult } from 'graphql'
import { ERRORS, toErrorCode } from '../../../schema/errors.ts'
import type { Span, Telemetry } from './telemetry.ts'

/** Where the last thing known of a request stands in a result for another process of the service. */
export const FACTS_EXTENSION = 'facts'

interface SocketOperationOptions {
  readonly requestId: string
  /** The name of its span. */
  readonly name: string
  /** The client is a process of this service: it is told what is known of the request, and writes the line of the log. */
  readonly isService: boolean
  /** Of `extensions`. */
  readonly traceparent: unknown
}

/** One operation over a socket, told of at its end. */
export class SocketOperation {
  readonly #telemetry: Telemetry
  readonly #options: SocketOperationOptions
  readonly #span: Span
  readonly #startedMs = performance.now()
  #firstMs: number | undefined
  #isOver = false
  #hasLeft = false

  constructor(telemetry: Telemetry, options: SocketOperationOptions) {
    this.#telemetry = telemetry
    this.#options = options
    const { requestId, name, isService, traceparent } = options
    this.#span = telemetry.tracer.start(name, {
      kind: 'server',
      begins: !isService,
      attributes: { 'network.protocol.name': 'websocket', 'kis.request_id': requestId },
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    })
    telemetry.requests.start(requestId, isService)
  }

  within<T>(work: () => T): T {
    return this.#span.within(work)
  }

  /** The results as the client gets them. The operation ends with the last one. */
  results(events: AsyncIterableIterator<ExecutionResult, undefined>): AsyncIterableIterator<ExecutionResult, undefined> {
    if (!this.#telemetry.isOn) return events
    const observed = async (next: Promise<IteratorResult<ExecutionResult, undefined>>) => {
      try {
        const item = await next
        this.#firstMs ??= performance.now() - this.#startedMs
        if (item.done) this.end()
        return item.done ? item : { done: false as const, value: this.result(item.value) }
      } catch (error) {
        this.end()
        throw error
      }
    }
    return {
      next: () => observed(this.within(() => events.next())),
      return: (value) => {
        this.#hasLeft = !this.#isOver
        const ended = this.within(() => events.return!(value))
        this.end()
        return ended
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  /** The result with what the client may know of the request. */
  result(result: ExecutionResult): ExecutionResult {
    const facts = this.#options.isService ? this.#telemetry.requests.drainUnsent(this.#options.requestId) : undefined
    return facts ? { ...result, extensions: { ...result.extensions, [FACTS_EXTENSION]: facts } } : result
  }

  /** Only the first call counts. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { requests, metrics, lines } = this.#telemetry
    const { requestId, isService } = this.#options
    const durationMs = performance.now() - this.#startedMs
    const facts = requests.end(requestId)
    const code = toErrorCode(facts?.error)
    this.#span.end(code)
    if (!isService)
      metrics.add('kis_socket_operations_total', 1, facts?.operation?.split(' ', 1)[0] ?? '', code ?? (this.#hasLeft ? 'left' : 'ok'))
    lines.ended({
      requestId,
      traceId: this.#span.traceId,
      route: 'socket',
      method: 'WS',
      status: code ? ERRORS[code].status : 200,
      durationMs,
      firstByteMs: this.#firstMs ?? durationMs,
      hasLeft: this.#hasLeft,
      facts,
    })
  }
}
