import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export interface ReceivedRequest {
  readonly method: string
  /** Without the query string. */
  readonly path: string
  readonly body: string
}

interface ScriptedResponse {
  /** Default: 200. */
  readonly status?: number
  readonly body: unknown
  /** The answer leaves when the server is released. */
  readonly isHeld?: boolean
}

/** A server in place of Elasticsearch that answers as told, and some requests only when it is released. */
export interface HeldElasticsearch extends AsyncDisposable {
  readonly url: string
  /** The header of each request. */
  readonly authorizations: readonly (string | undefined)[]
  /** How many requests wait for their answers. */
  readonly held: number
  /** Resolves when so many requests wait. */
  holds(count: number): Promise<void>
  /** Answers all that wait, and the later ones at once. */
  release(): void
}

export async function startHeldElasticsearch(respond: (received: ReceivedRequest) => ScriptedResponse): Promise<HeldElasticsearch> {
  const released = Promise.withResolvers<void>()
  const authorizations: (string | undefined)[] = []
  let held = 0
  let onHeld: (() => void) | undefined
  const server = createServer(async (request, response) => {
    authorizations.push(request.headers.authorization)
    const received = { method: request.method!, path: request.url!.split('?')[0]!, body: await text(request) }
    const { status = 200, body, isHeld = false } = respond(received)
    if (isHeld) {
      held += 1
      onHeld?.()
      await released.promise
    }
    response.writeHead(status, { 'content-type': 'application/json', 'x-elastic-product': 'Elasticsearch' })
    response.end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorizations,
    get held() {
      return held
    },
    async holds(count) {
      while (held < count)
        await new Promise<void>((resolve) => {
          onHeld = resolve
        })
    },
    release: () => released.resolve(),
    async [Symbol.asyncDispose]() {
      released.resolve()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
