import { mediaTypeEssence } from '@modelcontextprotocol/sdk/shared/mediaType.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'
import { type Egress, EgressError } from '../../../common/egress/egress.ts'
import type { AuthorizeRequest } from '../../ports/mcp.ts'
import { EventStreamParser } from '../openai/event-stream.ts'
import { JsonGauge } from '../vendor/json-gauge.ts'

/** Bytes of one answer with all its events. A model can read far less of it. */
const MAX_BYTES = 2 ** 20
/**
 * Lists, objects and fields of one message, and items of its lists and objects. A list of 200 tools with eight parameters
 * each has 8,500. The SDK describes each wrong value of a message in some hundred bytes or more: a message of 1 MiB would
 * take seconds of the event loop and a gigabyte.
 */
const MAX_VALUES = 15_000
/** Events of one answer. A call of 30 s may tell its progress every 30 ms. */
const MAX_EVENTS = 1_000
/** Requests of a server that are answered over one connection. It may only ask whether we are still here. */
const MAX_REPLIES = 200
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
export function egressFetch(egress: Egress, organizationId: string, authorize: AuthorizeRequest, totalMs: number): FetchLike {
  const inFlight = new Map<unknown, AbortController>()
  let replies = 0
  return async (address, init = {}) => {
    const method = init.method ?? 'GET'
    if (method !== 'POST' && method !== 'DELETE') return new Response(null, { status: 405 })
    const text = typeof init.body === 'string' ? init.body : undefined
    const { id, method: verb, params } = (text === undefined ? {} : JSON.parse(text)) as Message
    if (text !== undefined && verb === undefined && ++replies > MAX_REPLIES) throw new EgressError('busy')
    if (verb === 'notifications/cancelled') inFlight.get(params?.requestId)?.abort()

    const stop = new AbortController()
    if (id !== undefined) inFlight.set(id, stop)
    const isOver = () => void inFlight.delete(id)
    const signal = init.signal ? AbortSignal.any([init.signal, stop.signal]) : stop.signal
    const request = {
      url: String(address),
      organizationId,
      method,
      headers: Object.fromEntries(new Headers(init.headers)),
      maxBytes: MAX_BYTES,
      totalMs,
      authorize,
      ...(text !== undefined && { body: text }),
    } as const
    const response = await egress.open(request, signal).catch((error: unknown) => {
      isOver()
      throw error
    })
    const { status } = response
    const headers = Object.entries(response.headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, value] as [string, string]] : [],
    )
    // As the SDK tells it.
    const isEvents = mediaTypeEssence(new Headers(headers).get('content-type')) === 'text/event-stream'
    const body = isEvents ? limitedEvents(response.body) : limited(response.body, id)
    const stream = toStream(body, isOver, stop, isEvents && id !== undefined ? id : null)
    if (!WITHOUT_BODY.includes(status)) return new Response(stream, { status, headers })
    await stream.cancel()
    return new Response(null, { status, headers })
  }
}

/**
 * The body, in one piece. Of a list of messages it has only the answer to the request `id`: the SDK would take all
 * messages in one turn of the event loop.
 * @throws {EgressError} `too_large`
 */
async function* limited(body: AsyncIterable<Uint8Array>, id: unknown): AsyncGenerator<Uint8Array> {
  const gauge = new JsonGauge(MAX_VALUES, MAX_VALUES)
  const pieces: Uint8Array[] = []
  for await (const piece of body) {
    if (gauge.exceeds(piece)) throw new EgressError('too_large')
    pieces.push(piece)
  }
  // Without byte order marks, which `fetch` takes off. So the SDK parses the text that is parsed here.
  const text = new TextDecoder().decode(Buffer.concat(pieces)).trimStart()
  yield Buffer.from(id === undefined ? text : withoutOthers(text, id))
}

function withoutOthers(text: string, id: unknown): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return text
  }
  if (!Array.isArray(value)) return text
  const response = (value as readonly (Message | null)[]).find((message) => message?.id === id && message?.method === undefined)
  return response ? JSON.stringify(response) : unanswered(id, 'The list of messages has no response.')
}

/**
 * The messages of the events, each in an event of one line. All else is left out: brackets in comments would mislead the
 * gauge.
 * @throws {EgressError} `too_large`
 */
async function* limitedEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const messages: string[] = []
  let count = 0
  const collect = (data: string, name: string) => {
    count += 1
    if (count > MAX_EVENTS) throw new EgressError('too_large')
    if (name === '' || name === 'message') messages.push(data.replaceAll('\n', ' '))
  }
  const parser = new EventStreamParser(collect, MAX_BYTES)
  function* flush() {
    for (const message of messages.splice(0)) {
      if (new JsonGauge(MAX_VALUES, MAX_VALUES).exceeds(Buffer.from(message))) throw new EgressError('too_large')
      yield toEvent(message)
    }
  }
  for await (const piece of body) {
    parser.push(Buffer.from(piece.buffer, piece.byteOffset, piece.length))
    yield* flush()
  }
  parser.end()
  yield* flush()
}

function toEvent(message: string): Uint8Array {
  return Buffer.from(`data: ${message}\n\n`)
}

/** A message that fails the request, for which the SDK would wait otherwise. After a response it has no effect. */
function unanswered(id: unknown, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: ErrorCode.ConnectionClosed, message } })
}

/**
 * Leaving the stream ends the request, even before its first piece: the SDK leaves the answers to its notifications
 * this way.
 * @param id the request that events answer, which has failed when they end, for whatever reason; null: a failure is an
 * error
 */
function toStream(body: AsyncIterable<Uint8Array>, isOver: () => void, stop: AbortController, id: unknown): ReadableStream<Uint8Array> {
  const pieces = body[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(controller) {
        let why: unknown
        try {
          const { done, value } = await pieces.next()
          if (!done) return controller.enqueue(value)
        } catch (error) {
          why = error
        }
        isOver()
        const message = why instanceof EgressError ? why.message : 'The events ended without a response.'
        if (id !== null) controller.enqueue(toEvent(unanswered(id, message)))
        else if (why !== undefined) throw why
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
