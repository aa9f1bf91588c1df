import type { ExecutionResult, GraphQLError } from 'graphql'
import { type Client, createClient } from 'graphql-ws'
import { Pool } from 'undici'
import { WebSocket } from 'ws'
import { endableIterator } from './endable-iterator.ts'
import { InvalidApiKey, isAbort, ServiceUnavailable } from './errors.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import { Lru } from './lru.ts'

/** Operations of one process to one other under way at once, over HTTP. A call of a slow model holds its connection. */
const MAX_CONNECTIONS = 1_024
/** A connection is made within this, or the service counts as unavailable. */
const CONNECT_TIMEOUT_MS = 2_000
/** Longer than the longest model call; whoever calls has a tighter limit of its own. */
const ANSWER_TIMEOUT_MS = 900_000
/** An embedding answer of 2,048 vectors of 3,072 floats is 33 MB as base64. */
const MAX_ANSWER_BYTES = 48 * 1024 * 1024
/** Frames between services carry chat requests with images: 20 MiB and their base64. */
export const MAX_SERVICE_FRAME_BYTES = 24 * 1024 * 1024
/** Events of one subscription that its reader has not taken yet. Past it the subscription ends with an error; no event is ever dropped. */
const MAX_UNREAD_EVENTS = 10_000
/** An idle socket is closed after this; the next operation opens another. */
const IDLE_SOCKET_MS = 10_000
const MAX_SOCKETS = 10_000

/** Close codes of a server that does not know the caller, or not any more. */
const REFUSALS: readonly unknown[] = [4401, 4403]

export interface RemoteLinkOptions<Who> {
  /** `http://127.0.0.1:4001`; operations go to its `/graphql`. */
  readonly url: string
  /** Named in errors. */
  readonly what: string
  /** Value of the `authorization` header, or null for none. Callers with equal keys share a socket, others never do. */
  authorization(caller: Who): Promise<string | null>
  socketKey(caller: Who): string
  /** Headers of a socket's upgrade request. Default: none. */
  upgradeHeaders?(): Promise<Record<string, string>>
}

/** A link to another process: HTTP keep-alive for queries and mutations, graphql-ws for subscriptions. Nothing is ever repeated. */
export function remoteLink<Who>({
  url,
  what,
  authorization,
  socketKey,
  upgradeHeaders,
}: RemoteLinkOptions<Who>): Link<Who> & AsyncDisposable {
  const pool = new Pool(new URL(url).origin, {
    connections: MAX_CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  })
  const sockets = new Lru<string, Client>(MAX_SOCKETS)

  function socketOf(caller: Who): Client {
    const key = socketKey(caller)
    let client = sockets.get(key)
    if (!client) {
      let headers: Record<string, string> = {}
      client = createClient({
        url: async () => {
          headers = (await upgradeHeaders?.()) ?? {}
          return `${url.replace(/^http/, 'ws')}/graphql`
        },
        webSocketImpl: class extends WebSocket {
          constructor(address: string, protocols: string[]) {
            super(address, protocols, {
              headers,
              maxPayload: MAX_SERVICE_FRAME_BYTES,
              perMessageDeflate: false,
              handshakeTimeout: CONNECT_TIMEOUT_MS,
            })
          }
        },
        lazy: true,
        lazyCloseTimeout: IDLE_SOCKET_MS,
        // A repeated subscription would be a second call of a model.
        retryAttempts: 0,
        connectionParams: async () => ({ authorization: await authorization(caller) }),
        on: { closed: () => sockets.delete(key) },
      })
      sockets.set(key, client)
    }
    return client
  }

  return {
    async execute(operation, context) {
      const credentials = await authorization(context.caller)
      try {
        const { body } = await pool.request({
          method: 'POST',
          path: '/graphql',
          headers: {
            'content-type': 'application/json',
            'x-request-id': context.requestId,
            ...(credentials && { authorization: credentials }),
          },
          body: JSON.stringify(operation),
          signal: context.signal,
        })
        const result = JSON.parse(await body.text()) as ExecutionResult
        if (!result.data && !result.errors) throw new Error('not a GraphQL answer')
        return result
      } catch (error) {
        if (context.signal.aborted && isAbort(error)) throw error
        throw new ServiceUnavailable(what, { cause: error })
      }
    },

    subscribe(operation, context) {
      const events = unread(what)
      let dispose: (() => void) | undefined
      return endableIterator<ExecutionResult>(
        () => {
          dispose ??= socketOf(context.caller).subscribe(payloadOf(operation, context), events.sink)
          return events.next()
        },
        () => dispose?.(),
        context.signal,
      )
    },

    async [Symbol.asyncDispose]() {
      await pool.destroy()
    },
  }
}

function payloadOf({ query, variables, operationName }: Operation, { requestId }: LinkContext<unknown>) {
  return {
    query,
    ...(variables && { variables: { ...variables } }),
    ...(operationName && { operationName }),
    extensions: { requestId },
  }
}

/** A bounded queue between a socket that pushes and a reader that pulls. */
function unread(what: string) {
  const queue: ExecutionResult[] = []
  let over = false
  let wake: (() => void) | undefined
  const push = (event: ExecutionResult, last: boolean) => {
    if (over) return
    queue.push(event)
    over = last
    wake?.()
  }
  const failure = (cause: unknown): ExecutionResult => {
    const closed = (cause as { code?: unknown }).code
    const { message, extensions } = REFUSALS.includes(closed) ? new InvalidApiKey() : new ServiceUnavailable(what, { cause })
    return { errors: [{ message, extensions } as unknown as GraphQLError] }
  }
  return {
    sink: {
      next: (event: unknown) => {
        if (queue.length < MAX_UNREAD_EVENTS) push(event as ExecutionResult, false)
        else push(failure(new Error('the reader is too slow')), true)
      },
      /** Errors of the operation come as a list; anything else is a socket that failed. */
      error: (error: unknown) => push(Array.isArray(error) ? { errors: error } : failure(error), true),
      complete: () => {
        over = true
        wake?.()
      },
    },
    async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
      if (queue.length === 0 && !over) await new Promise<void>((resolve) => (wake = resolve))
      const value = queue.shift()
      return value ? { done: false, value } : { done: true, value: undefined }
    },
  }
}
