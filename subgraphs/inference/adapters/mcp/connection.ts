import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { CallToolResultSchema, ErrorCode, ListToolsResultSchema, McpError } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import { type Egress, EgressError } from '../../../common/egress/egress.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type McpAnswer, type McpConnection, McpFailure, type McpTool } from '../../ports/mcp.ts'
import { egressFetch } from './egress-fetch.ts'

/** How long a server may take. */
export interface McpWaits {
  /** To connect, and for one page of tools. */
  readonly listMs: number
  /** For one call. */
  readonly callMs: number
}

/** To close the connection. Nobody waits for it. */
const CLOSE_MS = 2_000
const MAX_PAGES = 10
const MAX_TOOLS = 200
/** Characters of a server's error message. */
const MAX_MESSAGE = 500

/**
 * Otherwise the SDK creates one for each client. Servers' answers are not checked against their own schemas, because
 * compiling those would run their code here.
 */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Connects to a server by the official SDK's client, which only uses the egress. */
export async function openConnection(
  egress: Egress,
  waits: McpWaits,
  url: string,
  headers: Readonly<Record<string, string>>,
  organizationId: string,
  signal: AbortSignal,
): Promise<McpConnection> {
  const client = new Client({ name: 'knowledge-and-inference-service', version: '1' }, { jsonSchemaValidator })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: egressFetch(egress, organizationId, Math.max(waits.listMs, waits.callMs)),
    requestInit: { headers },
    // The egress checks each redirect.
    redirectPolicy: 'follow',
    reconnectionOptions: { maxRetries: 0, initialReconnectionDelay: 0, maxReconnectionDelay: 0, reconnectionDelayGrowFactor: 1 },
  })
  const connection = new Connection(client, transport, waits)
  try {
    // Its `sessionId` may be undefined, which the SDK's own interface does not say.
    await client.connect(transport as Transport, { signal, timeout: waits.listMs, maxTotalTimeout: waits.listMs })
    return connection
  } catch (error) {
    await connection[Symbol.asyncDispose]()
    throw toFailure(error, signal)
  }
}

class Connection implements McpConnection {
  readonly #client: Client
  readonly #transport: StreamableHTTPClientTransport
  readonly #waits: McpWaits

  constructor(client: Client, transport: StreamableHTTPClientTransport, waits: McpWaits) {
    this.#client = client
    this.#transport = transport
    this.#waits = waits
  }

  async listTools(signal: AbortSignal): Promise<readonly McpTool[]> {
    const tools: McpTool[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES && tools.length < MAX_TOOLS; page++) {
      const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } } as const
      const options = { signal, timeout: this.#waits.listMs, maxTotalTimeout: this.#waits.listMs }
      const found = await this.#client.request(request, ListToolsResultSchema, options).catch((error: unknown) => {
        throw toFailure(error, signal)
      })
      tools.push(...found.tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema })))
      cursor = found.nextCursor
      if (cursor === undefined) break
    }
    return tools.slice(0, MAX_TOOLS)
  }

  async callTool(name: string, args: ProtocolObject, signal: AbortSignal): Promise<McpAnswer> {
    const request = { method: 'tools/call', params: { name, arguments: { ...args } } } as const
    try {
      const options = { signal, timeout: this.#waits.callMs, maxTotalTimeout: this.#waits.callMs }
      const { content, structuredContent, isError } = await this.#client.request(request, CallToolResultSchema, options)
      const texts = content.map((part) => (part.type === 'text' ? part.text : `[${part.type} left out]`))
      const text = texts.length > 0 || structuredContent === undefined ? texts.join('\n') : JSON.stringify(structuredContent)
      return { text, isError: isError === true }
    } catch (error) {
      throw toFailure(error, signal)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref())
    await Promise.race([this.#transport.terminateSession().catch(() => undefined), late])
    await this.#client.close().catch(() => undefined)
  }
}

function toFailure(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof McpError && error.code === ErrorCode.RequestTimeout) return new McpFailure('It did not answer in time.', error)
  if (error instanceof McpError && error.code !== ErrorCode.ConnectionClosed)
    return new McpFailure(`It refused: ${error.message.slice(0, MAX_MESSAGE)}`, error)
  if (error instanceof EgressError) return new McpFailure(error.message, error)
  return new McpFailure('It did not answer by the protocol.', error)
}
