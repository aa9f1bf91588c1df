import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ExecutionResult } from 'graphql'
import { KisError } from '../subgraphs/common/errors.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'
import { EndedByRestart, SocketDrain } from '../subgraphs/common/process/socket-drain.ts'
import { EventStream } from '../subgraphs/common/server/event-stream.ts'
import type { Drainable } from '../subgraphs/common/server/listen.ts'
import type { HttpContext } from './http.ts'
import { type Operations, type Results, single } from './operations.ts'
import type { PersistedOperations } from './persisted-operations.ts'
import { FULL_RETRY_MS, type SocketRegistry } from './socket-registry.ts'
import type { Variables } from './variables.ts'

interface EventStreamParts {
  readonly operations: Operations
  readonly persisted: PersistedOperations
  readonly registry: SocketRegistry
  readonly clock: Clock
}

type Begun = (first: ExecutionResult) => void

/** What a request asks for. */
interface StreamRequest {
  readonly query: string
  readonly operationName: string | undefined
  readonly variables: Variables
}

/**
 * GraphQL over server-sent events: one operation a request, the "distinct connections mode" of graphql-sse. An operation
 * counts with those that its key runs over sockets.
 */
export class EventStreams implements Drainable {
  readonly #parts: EventStreamParts
  readonly #drain = new SocketDrain()

  constructor(parts: EventStreamParts) {
    this.#parts = parts
  }

  /**
   * Answers with events if the client wants that: it takes nothing else, or takes them and asks for a subscription.
   * False: the request is answered in another way. `begun` hears of the first result.
   */
  async handle(request: FastifyRequest, reply: FastifyReply, context: HttpContext, begun: Begun): Promise<boolean> {
    const { accept = '' } = request.headers
    const streamRequest = accept.includes('text/event-stream') ? readStreamRequest(request) : undefined
    if (!streamRequest) return false
    const results = this.#start(streamRequest, request.method, context, /json|\*\/\*/.test(accept))
    if (!results) return false
    await this.#send(reply, results, context, begun)
    return true
  }

  /** Undefined: the operation is answered as JSON. */
  #start(
    { query, operationName, variables }: StreamRequest,
    method: string,
    context: HttpContext,
    acceptsJson: boolean,
  ): Results | undefined {
    const { operations, persisted, registry } = this.#parts
    const failed = (error: unknown) => single(async () => operations.failed(error, context.requestId))
    const prepared = operations.prepare(query, operationName, context.requestId)
    if (!('document' in prepared)) return acceptsJson ? undefined : single(async () => prepared)
    const kind = prepared.operation.operation
    if (acceptsJson && kind !== 'subscription') return undefined
    try {
      if (method === 'GET' && kind === 'mutation') throw new KisError('invalid_request', 'Send a mutation by POST.')
      if (!context.isService) persisted.requireOpen(prepared.hash, context.caller)
      const release = registry.startStream(context.caller)
      if (!release)
        throw new KisError(
          'rate_limit_exceeded',
          'This key, or its organization, has reached its limit of concurrent operations over sockets and event streams. Wait until one of them ends.',
          { retryAfterMs: FULL_RETRY_MS },
        )
      const results =
        kind === 'subscription'
          ? operations.subscribe(prepared, variables, context, release)
          : single(() => operations.execute(prepared, variables, context), release)
      return this.#drain.results(results, () => operations.failed(new EndedByRestart(), context.requestId))
    } catch (error) {
      return failed(error)
    }
  }

  async #send(reply: FastifyReply, results: Results, { signal }: HttpContext, begun: Begun): Promise<void> {
    using events = new EventStream(reply, this.#parts.clock)
    const cancel = () => void results.return?.()
    signal.addEventListener('abort', cancel, { once: true })
    let isFirst = true
    try {
      // A subscription without an event so far is open all the same.
      await events.write('')
      for await (const result of results) {
        if (isFirst) begun(result)
        isFirst = false
        await events.write(format('next', result))
      }
      await events.write(format('complete'))
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      cancel()
      events.end()
    }
  }

  /** Ends all running operations, each with an error as its last result. */
  end(): void {
    this.#drain.end()
  }
}

function format(event: 'next' | 'complete', result?: ExecutionResult): string {
  return `event: ${event}\ndata: ${result ? JSON.stringify(result) : ''}\n\n`
}

/** Undefined: the request is not well-formed, which GraphQL over HTTP answers. */
function readStreamRequest({ method, url, body }: FastifyRequest): StreamRequest | undefined {
  const input = method === 'GET' ? Object.fromEntries(new URLSearchParams(url.split('?', 2)[1])) : body
  if (typeof input !== 'object' || input === null) return undefined
  const { query, operationName, variables, extensions } = input as Record<string, unknown>
  // The size of a body was checked, but not of JSON inside its texts. Apollo Server refuses such a body, too.
  if (method !== 'GET' && (typeof variables === 'string' || typeof extensions === 'string')) return undefined
  const values = typeof variables === 'string' ? parsedOrNull(variables) : (variables ?? {})
  if (typeof query !== 'string' || typeof values !== 'object' || values === null || Array.isArray(values)) return undefined
  return { query, operationName: typeof operationName === 'string' ? operationName : undefined, variables: values as Variables }
}

function parsedOrNull(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
