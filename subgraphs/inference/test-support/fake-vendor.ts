import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that a test's vendor got. */
export interface Received {
  readonly request: IncomingMessage
  /** Empty for forms. */
  readonly body: Readonly<Record<string, unknown>>
  /** Resolves when the connection of this request closes. */
  readonly closed: Promise<void>
}

/** For tests: an HTTP server on a free local port that answers each request as the test says. */
export class FakeVendor implements AsyncDisposable {
  readonly received: Received[] = []
  readonly #server

  private constructor(respond: (response: ServerResponse, received: Received) => void) {
    this.#server = createServer((request, response) => {
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      request.socket.once('close', resolve)
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const isForm = request.headers['content-type']?.startsWith('multipart/form-data')
        const received = { request, closed, body: isForm ? {} : JSON.parse(Buffer.concat(pieces).toString()) }
        this.received.push(received)
        respond(response, received)
      })
    })
  }

  static async start(respond: (response: ServerResponse, received: Received) => void): Promise<FakeVendor> {
    const vendor = new FakeVendor(respond)
    await new Promise<void>((resolve) => vendor.#server.listen(0, '127.0.0.1', resolve))
    return vendor
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export function respondJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
}
