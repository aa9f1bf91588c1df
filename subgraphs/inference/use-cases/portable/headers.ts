import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import type { McpServer } from '../../domain/agents/mcp-servers.ts'
import { headersPlace } from '../agents/mcp-tools.ts'

/** Sealed texts, with the organization whose places they are sealed for. */
export interface Sealing {
  readonly secrets: SealedTexts
  readonly organizationId: string
}

/**
 * Seals the headers of an agent's servers anew. `to` is null if they may not go along: the servers are then there without
 * them. `left` is called for each server that loses its headers.
 */
export function resealHeaders(definition: string, from: Sealing | null, to: Sealing | null, left: () => void): string {
  const parsed = JSON.parse(definition) as { readonly mcpServers?: readonly McpServer[] }
  const { mcpServers = [] } = parsed
  if (mcpServers.every(({ sealedHeaders }) => sealedHeaders === null)) return definition
  const servers = mcpServers.map((server) => {
    const { sealedHeaders, url } = server
    if (sealedHeaders === null) return server
    if (from && to) {
      const headers = from.secrets.open(sealedHeaders, headersPlace(from.organizationId, url))
      return { ...server, sealedHeaders: to.secrets.seal(headers, headersPlace(to.organizationId, url)) }
    }
    left()
    return { ...server, headerNames: [], sealedHeaders: null }
  })
  return JSON.stringify({ ...parsed, mcpServers: servers })
}
