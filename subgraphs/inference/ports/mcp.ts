import type { ProtocolObject } from './engines.ts'

/** Model Context Protocol servers, at addresses that callers gave. */
export interface McpClients {
  /** Whether the form of the address allows a call. */
  allows(url: string): boolean
  /**
   * Whether the address is allowed, also by where its name leads right now.
   * @throws the reason of the aborted signal
   */
  mayReach(url: string, signal: AbortSignal): Promise<boolean>
  /** Whether the operator has named the server as their own. */
  isLocal(url: string): boolean
  /**
   * Connects to a server. Dispose of the connection. `headers` go with each request, and each request takes a place of
   * the organization. `letLeave` is called before anything leaves for an address, also by a redirect, a cancellation or
   * the end of the connection. If it throws, nothing leaves, and what was asked fails.
   * @throws {McpFailure} there is no server, it does not answer in time, or it breaks the protocol
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
 * @throws {McpFailure} nothing may go there
 * @throws {KisError} the caller may no longer call; thrown by whatever would have called the server
 */
export type AuthorizeRequest = (url: string) => Promise<void>

/** A connection to a server. Nothing that the server sends is trusted, and all of it is bounded. */
export interface McpConnection extends AsyncDisposable {
  /**
   * Gives at most 200 tools.
   * @throws {McpFailure} the server does not answer in time, or breaks the protocol
   * @throws the reason of the aborted signal
   */
  listTools(signal: AbortSignal): Promise<readonly McpTool[]>
  /**
   * Calls a tool. Never repeated, because the tool may have run. Tells the server when the signal aborts.
   * @throws {McpFailure} the server does not answer in time, or breaks the protocol
   * @throws the reason of the aborted signal
   */
  callTool(name: string, args: ProtocolObject, signal: AbortSignal): Promise<McpToolResult>
}

export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object, not checked further. */
  readonly inputSchema: ProtocolObject
}

export interface McpToolResult {
  /** The result as text. Parts of other kinds are named in their place. */
  readonly text: string
  /** The tool reports that it has failed. */
  readonly isError: boolean
}

/** Why a server gave no answer, in words that a model may read. `cause` is for the log. */
export class McpFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'McpFailure'
  }
}
