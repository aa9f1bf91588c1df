import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import type { Egress } from '../../../common/egress/egress.ts'

/** Bytes of one answer with all its events. A model can read far less of it. */
const MAX_BYTES = 2 ** 20
/** These have no body, and `Response` accepts none. */
const WITHOUT_BODY = [204, 205, 304]

interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: { readonly requestId?: unknown }
}

/**
 * `fetch` for one transport of the SDK. It does not open a server's own stream, which nobody reads. After a
 * cancellation or a timeout the SDK tells the server and waits no longer, but leaves the connection open; here the
 * connection ends, too.
 */
export function egressFetch(egress: Egress, organizationId: string, totalMs: number): FetchLike {
  const underWay = new Map<unknown, AbortController>()
  return async (address, init = {}) => {
    const method = init.method ?? 'GET'
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 })
    const text = typeof init.body === 'string' ? init.body : undefined
    const { id, method: verb, params } = (text === undefined ? {} : JSON.parse(text)) as Message
    if (verb === 'notifications/cancelled') underWay.get(params?.requestId)?.abort()

    const stop = new AbortController()
    if (id !== undefined) underWay.set(id, stop)
    const isOver = () => void underWay.delete(id)
    const signal = init.signal ? AbortSignal.any([init.signal, stop.signal]) : stop.signal
    const request = {
      url: String(address),
      organizationId,
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      maxBytes: MAX_BYTES,
      totalMs,
      ...(text !== undefined && { body: text }),
    } as const
    const answer = await egress.open(request, signal).catch((error: unknown) => {
      isOver()
      throw error
    })
    const { status } = answer
    const headers = Object.entries(answer.headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as [string, string]] : [],
    )
    const isEvents = String(answer.headers['content-type']).startsWith('text/event-stream')
    const lastWords = isEvents && id !== undefined ? unanswered(id) : null
    const stream = toStream(answer.body, isOver, stop, lastWords)
    if (!WITHOUT_BODY.includes(status)) return new Response(stream, { status, headers })
    await stream.cancel()
    return new Response(null, { status, headers })
  }
}

/**
 * An event that fails the request. Without it the SDK would wait for a response after the end of the events. After a
 * response it has no effect.
 */
function unanswered(id: unknown): Uint8Array {
  const error = { code: ErrorCode.ConnectionClosed, message: 'The events ended without a response.' }
  return Buffer.from(`\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error })}\n\n`)
}

/**
 * Leaving the stream ends the request, even before its first piece: the SDK leaves the answers to its notifications
 * this way.
 * @param lastWords what ends the stream, even after a failure; null: a failure is an error
 */
function toStream(
  body: AsyncIterable<Uint8Array>,
  isOver: () => void,
  stop: AbortController,
  lastWords: Uint8Array | null,
): ReadableStream<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          if (!lastWords) {
            isOver()
            throw error
          }
        }
        isOver()
        if (lastWords) controller.enqueue(lastWords)
        controller.close()
      },
      cancel() {
        isOver()
        stop.abort()
      },
    },
    { highWaterMark: 0 },
  )
}
