import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema, type Tool } from '@modelcontextprotocol/sdk/types.js'

/** Answers a `tools/call` in place of the SDK, or does not answer it. */
type Misbehaviour = (response: ServerResponse, id: unknown, inside: string) => void

const MISBEHAVIOURS: Readonly<Record<string, Misbehaviour>> = {
  silent: () => undefined,
  huge: (response, id) => {
    const result = { content: [{ type: 'text', text: 'x'.repeat(5 * 1024 * 1024) }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  },
  endless: (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => response.write(': still here\n\n'), 10)
    response.on('close', () => clearInterval(timer))
  },
  flooding: (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const noise = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(10_000) } })}\n\n`
    const timer = setInterval(() => response.write(noise.repeat(10)), 1)
    response.on('close', () => clearInterval(timer))
  },
  redirecting: (response, _id, inside) => void response.writeHead(307, { location: inside }).end(),
  garbled: (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc": "2.0", "id"'),
  html: (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Welcome</p>'),
  failing: (response) => void response.writeHead(500).end('out of order'),
}

/**
 * An MCP server on loopback, built with the official SDK. It works below `/good`. Below the name of a misbehaviour
 * (`silent`, `huge`, `endless`, `flooding`, `redirecting`, `garbled`, `html`, `failing`) it lists its tools, and
 * misbehaves when one is called.
 */
export class TestMcpServer implements AsyncDisposable {
  tools: Tool[] = [
    {
      name: 'find_customer',
      description: 'Finds a customer by name.',
      inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  ]
  result: CallToolResult = { content: [{ type: 'text', text: 'Salim lives in Sur.' }] }
  readonly calls: { readonly name: string; readonly arguments: unknown }[] = []
  readonly headers: IncomingHttpHeaders[] = []
  /** The protocol's method of each request; of one without a message, HTTP's. */
  readonly methods: string[] = []
  /** The number of calls with an open connection. */
  waiting = 0
  /** The number of requests that reached a second server, whose address is forbidden. */
  inside = 0
  readonly #inside = createServer((_request, response) => {
    this.inside += 1
    response.end()
  })
  readonly #server = createServer((request, response) => void this.#respond(request, response))

  static async start(): Promise<TestMcpServer> {
    const server = new TestMcpServer()
    for (const one of [server.#server, server.#inside]) await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve))
    return server
  }

  /** Returns the address in the format of `KIS_EGRESS_ALLOW`. */
  get hostAndPort(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  toUrl(behaviour: string): string {
    return `http://${this.hostAndPort}/${behaviour}`
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.headers.push(request.headers)
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = pieces.length > 0 ? JSON.parse(Buffer.concat(pieces).toString()) : undefined
    this.methods.push(body?.method ?? request.method)
    // So that the client ends the session.
    if (body?.method === 'initialize') response.setHeader('mcp-session-id', 'session_1')
    const misbehave = MISBEHAVIOURS[request.url!.slice(1)]
    if (body?.method === 'tools/call') {
      this.calls.push(body.params)
      this.waiting += 1
      response.on('close', () => {
        this.waiting -= 1
      })
      if (misbehave) return misbehave(response, body.id, `http://127.0.0.1:${(this.#inside.address() as AddressInfo).port}/`)
    }
    const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: this.tools }))
    server.setRequestHandler(CallToolRequestSchema, () => this.result)
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as object)
    await server.connect(transport as Transport)
    await transport.handleRequest(request, response, body)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of [this.#server, this.#inside]) {
      one.closeAllConnections()
      await new Promise((resolve) => one.close(resolve))
    }
  }
}
