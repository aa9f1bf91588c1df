import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'

export interface WireResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly tookMs: number
}

/** The wait for an answer. */
const TIMEOUT_MS = 30_000

/** Sends requests byte for byte as given, so that the server judges what is wrong with them. */
export class Wire {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 })
  readonly #base: string

  constructor(base: string) {
    this.#base = base
  }

  /**
   * Sends a request. Opens a new connection if the server has closed the last one.
   * @throws {Error} if there is no answer, or a new connection breaks.
   */
  async send(method: string, path: string, headers: OutgoingHttpHeaders, body?: Buffer, chunked = false): Promise<WireResponse> {
    try {
      return await this.#send(this.#agent, method, path, headers, body, chunked)
    } catch {
      // Not with `connection: close`: the server would close the connection with its answer, before the body has ended.
      const agent = new Agent({ keepAlive: true })
      return this.#send(agent, method, path, headers, body, chunked).finally(() => agent.destroy())
    }
  }

  #send(agent: Agent, method: string, path: string, headers: OutgoingHttpHeaders, body: Buffer | undefined, chunked: boolean) {
    const { promise, resolve, reject } = Promise.withResolvers<WireResponse>()
    const startedMs = performance.now()
    const { hostname, port } = new URL(this.#base)
    const length = body && !chunked ? { 'content-length': body.length } : {}
    const sent = httpRequest({ agent, hostname, port, method, path, headers: { ...headers, ...length } }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(pieces).toString()
        resolve({ status: response.statusCode!, headers: response.headers, text, tookMs: performance.now() - startedMs })
      })
    })
    sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
    sent.on('error', reject)
    if (chunked && body) for (let at = 0; at < body.length; at += 1_000) sent.write(body.subarray(at, at + 1_000))
    sent.end(chunked ? undefined : body)
    return promise
  }

  close(): void {
    this.#agent.destroy()
  }
}
