import * as operations from '../contract/mcp.ts'
import { type Route, route } from '../http/route.ts'
import type { CancellableRequests } from './cancellable-requests.ts'
import { MCP_DIALECT } from './errors.ts'
import { refuseUnknownHosts } from './hosts.ts'

/** The Model Context Protocol over streamable HTTP. Its packages are loaded with the first message. */
export function mcpRoutes(cancellable: CancellableRequests): readonly Route[] {
  return [
    route({
      operation: operations.postMcpMessage,
      checkedBehind: true,
      dialect: MCP_DIALECT,
      refuse: refuseUnknownHosts,
      async handle(call) {
        const { handleMessage } = await import('./handle-message.ts')
        return handleMessage(call, cancellable)
      },
    }),
  ]
}
