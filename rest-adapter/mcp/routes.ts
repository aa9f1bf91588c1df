import * as operations from '../contract/mcp.ts'
import { type Route, route } from '../http/route.ts'
import { MCP_DIALECT } from './errors.ts'
import { refuseUnknownHosts } from './hosts.ts'
import type { RequestsUnderWay } from './under-way.ts'

/** The Model Context Protocol over streamable HTTP. Its packages are loaded with the first message. */
export function mcpRoutes(underWay: RequestsUnderWay): readonly Route[] {
  return [
    route({
      operation: operations.postMcpMessage,
      checkedBehind: true,
      dialect: MCP_DIALECT,
      refuse: refuseUnknownHosts,
      async handle(call) {
        const { handleMessage } = await import('./handle-message.ts')
        return handleMessage(call, underWay)
      },
    }),
  ]
}
