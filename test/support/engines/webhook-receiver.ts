import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { Webhook } from 'standardwebhooks'
import { parse } from 'yaml'
import type { Json } from '../client.ts'

/** A received message with a verified signature. */
export interface Received {
  readonly id: string
  readonly type: string
  readonly timestamp: string
  readonly data: Json
  /** The status of the answer. */
  readonly status: number
}

/** Returns the status for a message, or `silence` to never answer. */
export type Answering = (message: Omit<Received, 'status'>) => number | 'silence' | Promise<number>

/**
 * Receivers of webhooks on loopback, one per path. The Standard Webhooks library verifies every message, and
 * `schema/events.yaml` validates it. An invalid message is answered 400 and recorded in `faults`.
 */
export class WebhookReceiver implements AsyncDisposable {
  readonly #server = createServer()
  readonly #endpoints = new Map<string, ReceiverEndpoint>()
  readonly #checks = eventChecks()

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver()
    receiver.#server.on('request', async (request, response) => {
      if (request.method === 'GET' && request.url!.startsWith('/page-'))
        return void response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>A page. <a href="${request.url}">Itself</a></p>`)
      const endpoint = receiver.#endpoints.get(request.url!)
      if (!endpoint) return void response.writeHead(404).end()
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece)
      await receiver.#handle(endpoint, Buffer.concat(pieces).toString(), request.headers as Record<string, string>, response)
    })
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  /** The host and port for `KIS_EGRESS_ALLOW`. */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The address of a page of HTML that links to itself. */
  page(name: string): string {
    return `http://${this.host}/page-${name}`
  }

  at(path: string): ReceiverEndpoint {
    const endpoint = new ReceiverEndpoint(`http://${this.host}${path}`)
    this.#endpoints.set(path, endpoint)
    return endpoint
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #handle(endpoint: ReceiverEndpoint, body: string, headers: Record<string, string>, response: ServerResponse): Promise<void> {
    const id = headers['webhook-id']!
    try {
      const { type, timestamp, data } = new Webhook(endpoint.secret).verify(body, headers) as Omit<Received, 'id' | 'status'>
      const check = this.#checks.get(type)
      if (!check?.(data)) throw new Error(`${type}: ${JSON.stringify(check?.errors)}`)
      const message = { id, type, timestamp, data }
      const status = await endpoint.answering(message)
      if (status === 'silence') return void endpoint.unanswered.push(message.id)
      endpoint.received.push({ ...message, status })
      response
        .writeHead(status, { 'content-type': 'text/plain', ...(endpoint.location && { location: endpoint.location }) })
        .end(`answered ${status}`)
    } catch (error) {
      endpoint.faults.push(error)
      response.writeHead(400).end()
    }
  }
}

export class ReceiverEndpoint {
  readonly url: string
  secret = ''
  /** The target of 3xx answers. */
  location = ''
  answering: Answering = () => 204
  readonly received: Received[] = []
  readonly unanswered: string[] = []
  readonly faults: unknown[] = []

  constructor(url: string) {
    this.url = url
  }

  /** The messages that were answered 2xx. */
  get accepted(): readonly Received[] {
    return this.received.filter(({ status }) => status < 300)
  }
}

/** Returns the validators of `schema/events.yaml` for the data of events, by type. */
export function eventChecks(): ReadonlyMap<string, ValidateFunction> {
  const events = parse(readFileSync(new URL('../../../schema/events.yaml', import.meta.url), 'utf8'), { merge: true })
  const ajv = new Ajv2020({ allowUnionTypes: true })
  return new Map(Object.entries<Json>(events).map(([type, { data }]) => [type, ajv.compile(data)]))
}
