import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LLMock } from '@copilotkit/aimock'
import type { Json } from '../client.ts'

/** A request to a vendor's cloud. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Json
  /** Resolves when the request's connection closes. */
  readonly closed: Promise<void>
}

/** Answers one request. */
export type Answering = (response: ServerResponse, received: Received) => void

/**
 * A vendor's cloud on loopback. It records the exact bytes of its requests and answers as the test says. Without
 * instructions it answers like `@copilotkit/aimock` for that vendor's protocol.
 */
export class VendorCloud implements AsyncDisposable {
  readonly received: Received[] = []
  readonly mock: LLMock
  answering: Answering | null = null
  readonly #server = createServer((request, response) => void this.#handle(request, response))

  private constructor(mock: LLMock) {
    this.mock = mock
  }

  static async start(): Promise<VendorCloud> {
    const cloud = new VendorCloud(await LLMock.create({ port: 0 }))
    await new Promise<void>((resolve) => cloud.#server.listen(0, '127.0.0.1', resolve))
    return cloud
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get last(): Received {
    return this.received.at(-1)!
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    // Many requests use one connection, and each waits for it to close.
    request.socket.setMaxListeners(0).once('close', resolve)
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    const received = { path: request.url!, headers: request.headers, body: JSON.parse(text), closed }
    this.received.push(received)
    if (this.answering) this.answering(response, received)
    else this.#forwardToMock(request, text, response)
  }

  #forwardToMock(request: IncomingMessage, body: string, response: ServerResponse): void {
    const { host: _, ...headers } = request.headers
    const forwarded = httpRequest(`${this.mock.url}${request.url}`, { method: 'POST', headers }, (mockResponse) => {
      response.writeHead(mockResponse.statusCode!, mockResponse.headers)
      mockResponse.pipe(response)
      mockResponse.on('close', () => {
        if (!mockResponse.complete) response.destroy()
      })
    })
    response.on('close', () => forwarded.destroy())
    forwarded.on('error', () => response.destroy())
    forwarded.end(body)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
    await this.mock.stop()
  }
}
