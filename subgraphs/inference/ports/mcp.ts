import type { ProtocolObject } from './engines.ts'

/** Servers of the Model Context Protocol, at addresses that callers gave. */
export interface McpClients {
  /** Whether the address may be asked, as far as its form shows. */
  mayAsk(url: string): boolean
  /** Whether it may, also by where its name leads at this moment. @throws the signal's reason. */
  mayReach(url: string, signal: AbortSignal): Promise<boolean>
  /** Whether the operator has the server in his own hands, as he says. */
  isLocal(url: string): boolean
  /**
   * Begins a conversation with a server, which must be disposed of. `headers` go with each request, and each takes a place of the organization.
   * @throws {McpFailure} there is no such server, it does not answer in time, or not by the protocol. @throws the signal's reason.
   */
  connect(url: string, headers: Readonly<Record<string, string>>, organizationId: string, signal: AbortSignal): Promise<McpConnection>
}

/** A conversation with a server. Nothing that it says is trusted; all of it is bounded. */
export interface McpConnection extends AsyncDisposable {
  /** At most 200, whatever the server has. @throws {McpFailure} @throws the signal's reason. */
  listTools(signal: AbortSignal): Promise<readonly McpTool[]>
  /** Not repeated: it may have been called. @throws {McpFailure} @throws the signal's reason, and tells the server. */
  callTool(name: string, args: ProtocolObject, signal: AbortSignal): Promise<McpAnswer>
}

export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object; not checked further. */
  readonly inputSchema: ProtocolObject
}

export interface McpAnswer {
  /** What it has in words; parts of other kinds are named in their place. */
  readonly text: string
  /** The tool says that it has failed. */
  readonly isError: boolean
}

/** Why a server gave no answer, in words that may be told to a model; `cause` is for the log. */
export class McpFailure extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'McpFailure'
  }
}
