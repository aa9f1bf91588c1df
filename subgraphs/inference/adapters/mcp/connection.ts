import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, ListToolsResultSchema, McpError, type Result, ResultSchema } from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv-provider.js'
import { type Egress, EgressError } from '../../../common/egress/egress.ts'
import { cut, KisError } from '../../../common/errors.ts'
import { redactorOf } from '../../domain/redact-secrets.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type AuthorizeRequest, type McpConnection, McpFailure, type McpTool, type McpToolResult } from '../../ports/mcp.ts'
import { egressFetch } from './egress-fetch.ts'

/** Longest waits for a server, in milliseconds. */
export interface McpWaits {
  /** For connecting, and for one page of tools. */
  readonly listMs: number
  /** For one call. */
  readonly callMs: number
}

/** Longest time to close the connection. Nobody waits for it. */
const CLOSE_MS = 2_000
const MAX_PAGES = 10
const MAX_TOOLS = 200

/**
 * Without this, the SDK creates a validator for each client. Results of servers are not checked against the servers'
 * own schemas, because compiling those would run code from them here.
 */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** Connects to a server with the official SDK's client, which sends only through the egress. */
export async function openConnection(
  egress: Egress,
  waits: McpWaits,
  url: string,
  headers: Readonly<Record<string, string>>,
  organizationId: string,
  authorize: AuthorizeRequest,
  signal: AbortSignal,
): Promise<McpConnection> {
  const client = new Client({ name: 'knowledge-and-inference-service', version: '1' }, { jsonSchemaValidator })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: egressFetch(egress, organizationId, authorize, Math.max(waits.listMs, waits.callMs)),
    requestInit: { headers },
    // The egress checks each redirect.
    redirectPolicy: 'follow',
    reconnectionOptions: { maxRetries: 0, initialReconnectionDelay: 0, maxReconnectionDelay: 0, reconnectionDelayGrowFactor: 1 },
  })
  // The header values as they are, and without `Bearer` before them.
  const known = redactorOf(Object.values(headers).flatMap((value) => [value, ...value.split(' ')]))
  const redact = (text: string) => known(text) ?? 'The message has a secret of a header, or is too long.'
  const connection = new Connection(client, transport, waits, redact)
  try {
    // The transport's `sessionId` may be undefined, which the SDK's own interface does not state.
    await client.connect(transport as Transport, { signal, timeout: waits.listMs, maxTotalTimeout: waits.listMs })
    return connection
  } catch (error) {
    await connection[Symbol.asyncDispose]()
    throw toFailure(error, signal, redact)
  }
}

class Connection implements McpConnection {
  readonly #client: Client
  readonly #transport: StreamableHTTPClientTransport
  readonly #waits: McpWaits
  readonly #redact: (text: string) => string

  constructor(client: Client, transport: StreamableHTTPClientTransport, waits: McpWaits, redact: (text: string) => string) {
    this.#client = client
    this.#transport = transport
    this.#waits = waits
    this.#redact = redact
  }

  async listTools(signal: AbortSignal): Promise<readonly McpTool[]> {
    const tools: McpTool[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES && tools.length < MAX_TOOLS; page++) {
      const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } } as const
      const options = { signal, timeout: this.#waits.listMs, maxTotalTimeout: this.#waits.listMs }
      const found = await this.#client.request(request, ListToolsResultSchema, options).catch((error: unknown) => {
        throw toFailure(error, signal, this.#redact)
      })
      tools.push(...found.tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema })))
      cursor = found.nextCursor
      if (cursor === undefined) break
    }
    return tools.slice(0, MAX_TOOLS)
  }

  async callTool(name: string, args: ProtocolObject, signal: AbortSignal): Promise<McpToolResult> {
    const request = { method: 'tools/call', params: { name, arguments: { ...args } } } as const
    try {
      const options = { signal, timeout: this.#waits.callMs, maxTotalTimeout: this.#waits.callMs }
      // Not the SDK's schema of the result, which would describe each wrong part in each of the ways in which it is
      // wrong.
      return readResult(await this.#client.request(request, ResultSchema, options))
    } catch (error) {
      throw toFailure(error, signal, this.#redact)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref())
    await Promise.race([this.#transport.terminateSession().catch(() => undefined), late])
    await this.#client.close().catch(() => undefined)
  }
}

/** @throws {TypeError} the result of the call is malformed */
function readResult({ content = [], structuredContent, isError }: Result): McpToolResult {
  if (!Array.isArray(content)) throw new TypeError('`content` is not a list.')
  const texts = content.map(readPart)
  const text = texts.length > 0 || structuredContent === undefined ? texts.join('\n') : JSON.stringify(structuredContent)
  return { text, isError: isError === true }
}

function readPart(part: { readonly type?: unknown; readonly text?: unknown } | null): string {
  if (part?.type === 'text' && typeof part.text === 'string') return part.text
  if (typeof part?.type !== 'string' || part.type === 'text') throw new TypeError('A part of `content` is malformed.')
  return `[${part.type} left out]`
}

/** `redact` removes the secrets of the server's headers, which the server may repeat. */
function toFailure(error: unknown, signal: AbortSignal, redact: (text: string) => string): unknown {
  if (signal.aborted) return signal.reason
  // Thrown by `authorize`.
  if (error instanceof McpFailure || error instanceof KisError) return error
  if (error instanceof EgressError) return new McpFailure(error.message, error)
  const cause = new Error(cut(redact(describe(error))))
  if (error instanceof McpError && error.code === ErrorCode.RequestTimeout) return new McpFailure('It did not respond in time.', cause)
  if (error instanceof McpError && error.code !== ErrorCode.ConnectionClosed) return new McpFailure(`It refused: ${cause.message}`, cause)
  return new McpFailure('Its response does not follow the protocol.', cause)
}

/**
 * Describes an error for the log. The SDK's errors quote whole responses, and those of zod list every fault once their
 * message is read.
 */
function describe(error: unknown): string {
  const details = error as {
    readonly issues?: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]
    readonly message?: unknown
  }
  const [issue] = details.issues ?? []
  return issue ? `${issue.path.map(String).join('.')}: ${issue.message}` : String(details.message)
}
