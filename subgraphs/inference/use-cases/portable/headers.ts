import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import type { McpServer } from '../../domain/agents/mcp-servers.ts'
import { headersPlace } from '../agents/mcp-tools.ts'

/** Sealed texts, with the organization whose places they are sealed for. */
export interface Sealing {
  readonly secrets: SealedTexts
  readonly organizationId: string
}

/** Seals headers that were sealed for one organization for another one. */
interface Resealing {
  readonly from: Sealing
  readonly to: Sealing
  /** Whether headers that cannot be opened are left out: a record that a rotation of the secret could not move. */
  readonly leavesUnopened?: boolean
}

/**
 * Seals the headers of an agent's servers anew. Null: they may not go along, and the servers are then there without
 * them. `left` is called for each server that loses its headers.
 * @throws {Error} as `SealedTexts.open`, unless what cannot be opened is left out
 */
export function resealHeaders(definition: string, resealing: Resealing | null, left: () => void): string {
  const parsed = JSON.parse(definition) as { readonly mcpServers?: readonly McpServer[] }
  const { mcpServers = [] } = parsed
  if (mcpServers.every(({ sealedHeaders }) => sealedHeaders === null)) return definition
  const servers = mcpServers.map((server) => {
    const { sealedHeaders, url } = server
    if (sealedHeaders === null) return server
    const sealed = resealing && reseal(sealedHeaders, url, resealing)
    if (sealed !== null) return { ...server, sealedHeaders: sealed }
    left()
    return { ...server, headerNames: [], sealedHeaders: null }
  })
  return JSON.stringify({ ...parsed, mcpServers: servers })
}

function reseal(sealed: string, url: string, { from, to, leavesUnopened = false }: Resealing): string | null {
  let headers: string
  try {
    headers = from.secrets.open(sealed, headersPlace(from.organizationId, url))
  } catch (error) {
    if (leavesUnopened) return null
    throw error
  }
  return to.secrets.seal(headers, headersPlace(to.organizationId, url))
}
