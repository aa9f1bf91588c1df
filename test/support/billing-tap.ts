import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type BillingOperation = 'placeHold' | 'dispatchHold' | 'checkpointHold' | 'settleHold' | 'voidHold'

/** One operation of inference on billing. */
export interface Exchange {
  /** Null if the operation is not about a hold. */
  readonly operation: BillingOperation | null
  readonly holdId: string | null
  readonly variables: HoldVariables
}

/** The variables of an operation that tests read. */
interface HoldVariables {
  readonly id?: string
  readonly input?: { readonly id?: string; readonly quantities?: { readonly outputTokens: number } }
}

/**
 * The phase of an exchange: billing has not received the request yet, or the caller has not received the answer yet.
 */
export type Phase = 'request' | 'answer'

/**
 * A proxy between inference and billing. A test sees each exchange before its request reaches billing and before its
 * answer returns. It can delay the exchange in either phase, or drop it. The processes do not notice the proxy.
 */
export class BillingTap implements AsyncDisposable {
  readonly #target: URL
  readonly #server: Server
  readonly #agent = new Agent({ keepAlive: true })
  /** The exchanges whose answers were passed on, oldest first. */
  readonly exchanges: Exchange[] = []
  /** Decides whether an exchange passes. The exchange waits for the decision. If null, all exchanges pass. */
  intercept: ((exchange: Exchange, phase: Phase) => Promise<'pass' | 'lose'> | 'pass' | 'lose') | null = null

  private constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((incoming, response) => {
      this.#carry(incoming, response).catch(() => response.destroy())
    })
  }

  static async start(port: number, target: string): Promise<BillingTap> {
    const tap = new BillingTap(target)
    tap.#server.listen(port, '127.0.0.1')
    await once(tap.#server, 'listening')
    return tap
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#agent.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #carry(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBytes(incoming)
    const exchange = readExchange(body)
    if (await this.#isLost(exchange, 'request')) return void response.destroy()
    const forwarded = await this.#forward(incoming, body)
    const bytes = await readBytes(forwarded)
    if (await this.#isLost(exchange, 'answer')) return void response.destroy()
    response.writeHead(forwarded.statusCode!, { ...forwarded.headers, 'content-length': bytes.length })
    response.end(bytes)
    this.exchanges.push(exchange)
  }

  async #isLost(exchange: Exchange, phase: Phase): Promise<boolean> {
    return exchange.operation !== null && (await this.intercept?.(exchange, phase)) === 'lose'
  }

  #forward({ method, url, headers }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = this.#target
    return new Promise((resolve, reject) => {
      const outgoing = request({ agent: this.#agent, hostname, port, method, path: url, headers }, resolve)
      outgoing.on('error', reject)
      outgoing.end(body)
    })
  }
}

async function readBytes(stream: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece as Buffer)
  return Buffer.concat(pieces)
}

function readExchange(body: Buffer): Exchange {
  const { query = '', variables = {} } = (body.length > 0 ? JSON.parse(body.toString()) : {}) as {
    readonly query?: string
    readonly variables?: HoldVariables
  }
  const operation = (/\b(?:place|dispatch|checkpoint|settle|void)Hold\b/.exec(query)?.[0] ?? null) as BillingOperation | null
  return { operation, holdId: variables.input?.id ?? variables.id ?? null, variables }
}
