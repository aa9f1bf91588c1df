import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import type { McpServer } from '../../domain/agents/mcp-servers.ts'
import type { AgentVersion, Collections } from '../tables.ts'
import { headersSealName } from './mcp-tools.ts'

/** Records of one read: an agent has up to some 100 KB. */
const BATCH = 50

/** The definition of an agent with other sealed headers. Null: a server gets none. */
export function resealed(definition: string, reseal: (sealedHeaders: string, url: string) => string | null): string {
  const parsed = JSON.parse(definition) as { readonly mcpServers?: readonly McpServer[] }
  const { mcpServers = [] } = parsed
  if (mcpServers.every(({ sealedHeaders }) => sealedHeaders === null)) return definition
  const servers = mcpServers.map((server) => {
    if (server.sealedHeaders === null) return server
    const sealedHeaders = reseal(server.sealedHeaders, server.url)
    return sealedHeaders === null ? { ...server, headerNames: [], sealedHeaders } : { ...server, sealedHeaders }
  })
  return JSON.stringify({ ...parsed, mcpServers: servers })
}

/**
 * Seals the headers of agents, and of all their versions, with another key. Those that no key opens stay as they are.
 * Repeatable. Gives how many those are.
 */
export async function resealAgents(
  { agents, agentVersions }: Pick<Collections, 'agents' | 'agentVersions'>,
  before: SealedTexts,
  after: SealedTexts,
): Promise<number> {
  return (await resealAll(agents, before, after)) + (await resealAll(agentVersions, before, after))
}

async function resealAll<T extends Pick<AgentVersion, '_id' | 'organizationId' | 'definition'>>(
  collection: DocumentCollection<T>,
  before: SealedTexts,
  after: SealedTexts,
): Promise<number> {
  let unopened = 0
  for (let last = '', isMore = true; isMore; ) {
    const page = await collection.find({ _id: { $gt: last } }, { sort: { _id: 1 }, limit: BATCH })
    for (const record of page) {
      let opens = true
      const definition = resealed(record.definition, (sealed, url) => {
        try {
          return after.reseal(sealed, headersSealName(record.organizationId, url), before)
        } catch {
          opens = false
          return sealed
        }
      })
      if (!opens) unopened++
      // Version 0.2 labelled records with the fingerprint of their secret.
      if (definition !== record.definition || 'secretFingerprint' in record)
        await collection.findOneAndUpdate({ _id: record._id }, { $set: { definition }, $unset: { secretFingerprint: '' } })
    }
    isMore = page.length === BATCH
    if (isMore) last = page.at(-1)!._id
  }
  return unopened
}
