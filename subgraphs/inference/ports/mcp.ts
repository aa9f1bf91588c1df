import type { ProtocolObject } from './engines.ts'

/** Connects to Model Context Protocol servers at addresses that callers configured. */
export interface McpClients {
  /** Whether the form of the address allows a call. */
  allows(url: string): boolean
  /**
   * Whether the address is allowed, including the IP addresses that its host name resolves to now.
   * @throws the reason of the aborted signal
   */
  mayReach(url: string, signal: AbortSignal): Promise<boolean>
  /** Whether the operator has listed the server as their own. */
  isLocal(url: string): boolean
  /**
   * Connects to a server. The caller disposes of the connection. `headers` go with each request, and each request
   * occupies a slot of the organization. `authorize` is called before any request leaves for an address, including
   * redirects, cancellations and the end of the connection. If `authorize` throws, nothing is sent and the operation
   * fails.
   * @throws {McpFailure} there is no server, it does not respond in time, or it breaks the protocol
   * @throws the reason of the aborted signal
   */
  connect(
    url: string,
    headers: Readonly<Record<string, string>>,
    organizationId: string,
    authorize: AuthorizeRequest,
    signal: AbortSignal,
  ): Promise<McpConnection>
}

/**
 * Decides whether a request may go to an address.
 * @throws {McpFailure} nothing may be sent to the address
 * @throws {KisError} the caller is no longer allowed to call; the operation that needed the request throws this error
 */
export type AuthorizeRequest = (url: string) => Promise<void>

/** A connection to a server. Everything that the server sends is untrusted and limited in size. */
export interface McpConnection extends AsyncDisposable {
  /**
   * Returns at most 200 tools.
   * @throws {McpFailure} the server does not respond in time, or breaks the protocol
   * @throws the reason of the aborted signal
   */
  listTools(signal: AbortSignal): Promise<readonly McpTool[]>
  /**
   * Calls a tool. A call is never retried, because the tool may have run. Notifies the server when the signal aborts.
   * @throws {McpFailure} the server does not respond in time, or breaks the protocol
   * @throws the reason of the aborted signal
   */
  callTool(name: string, args: ProtocolObject, signal: AbortSignal): Promise<McpToolResult>
}

/** A tool as its server lists it. */
export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. The schema is not checked further. */
  readonly inputSchema: ProtocolObject
}

export interface McpToolResult {
  /** The result as text. A part of another kind is replaced by its name. */
  readonly text: string
  /** The tool reports that it has failed. */
  readonly isError: boolean
}

/** Why a server returned no result, in words that a model may read. `cause` is for the log. */
export class McpFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'McpFailure'
  }
}
