import type { Egress } from '../../../common/egress/egress.ts'
import { hostAndPort } from '../../../common/egress/egress-address.ts'
import type { McpClients } from '../../ports/mcp.ts'
import type { McpWaits } from './connection.ts'

/** A run waits for the tools of all servers before it begins, and for each call. */
const WAITS: McpWaits = { listMs: 10_000, callMs: 30_000 }

/**
 * Clients of the Model Context Protocol. Its packages are loaded with the first connection.
 * @param local entries `host:port`
 */
export function mcpClientsOver(egress: Egress, local: ReadonlySet<string>, waits: McpWaits = WAITS): McpClients {
  return {
    allows: (url) => egress.allows(url),
    mayReach: (url, signal) => egress.mayReach(url, signal),
    isLocal: (url) => local.has(hostAndPort(new URL(url))),
    async connect(url, headers, organizationId, authorize, signal) {
      const { openConnection } = await import('./connection.ts')
      return openConnection(egress, waits, url, headers, organizationId, authorize, signal)
    },
  }
}
