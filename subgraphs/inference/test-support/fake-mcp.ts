import type { ProtocolObject } from '../ports/engines.ts'
import { type AuthorizeRequest, type McpClients, McpFailure, type McpTool, type McpToolResult } from '../ports/mcp.ts'

interface FakeServer {
  readonly tools: readonly McpTool[]
  /** `wait`: never responds. */
  respond(tool: string, args: ProtocolObject): McpToolResult | McpFailure | 'wait'
}

/**
 * Servers by their address. Everything else is unreachable. Addresses below `http://10.` are refused, those below
 * `https://inside.` lead to internal hosts, and those below `http://local.` are the operator's.
 */
export class FakeMcp implements McpClients {
  readonly servers = new Map<string, FakeServer>()
  readonly connected: { readonly url: string; readonly headers: Readonly<Record<string, string>> }[] = []
  readonly called: { readonly tool: string; readonly args: ProtocolObject }[] = []
  open = 0

  allows(url: string): boolean {
    return !url.startsWith('http://10.')
  }

  async mayReach(url: string): Promise<boolean> {
    return this.allows(url) && !url.startsWith('https://inside.')
  }

  isLocal(url: string): boolean {
    return url.startsWith('http://local.')
  }

  async connect(url: string, headers: Readonly<Record<string, string>>, _organizationId: string, authorize: AuthorizeRequest) {
    await authorize(url)
    this.connected.push({ url, headers })
    const server = this.servers.get(url)
    if (!server) throw new McpFailure('Its response does not follow the protocol.')
    this.open += 1
    return {
      listTools: async () => server.tools,
      callTool: async (tool: string, args: ProtocolObject, signal: AbortSignal) => {
        await authorize(url)
        this.called.push({ tool, args })
        const result = server.respond(tool, args)
        if (result === 'wait')
          return new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
        if (result instanceof McpFailure) throw result
        return result
      },
      [Symbol.asyncDispose]: async () => {
        this.open -= 1
      },
    }
  }
}
