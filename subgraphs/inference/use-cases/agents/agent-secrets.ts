import type { Fingerprints } from '../../../common/identity/accepted-secrets.ts'
import type { SealedTexts } from '../../../common/identity/sealed-text.ts'
import type { Update } from '../../../common/ports/document-store.ts'
import type { Dependents } from '../../../common/rotation/secret-rotation.ts'
import { type AgentDefinition, readDefinition, storedDefinition } from '../../domain/agents/definition.ts'
import type { AgentRecord, AgentVersion, Collections } from '../tables.ts'
import { headersPlace } from './mcp-tools.ts'

/** The definition with its sealed headers under the current secret. Those that nothing opens stay as they are. */
export function renewSealed(sealed: SealedTexts, organizationId: string, definition: AgentDefinition): AgentDefinition {
  const renewed = (text: string, url: string) => {
    try {
      return sealed.renew(text, headersPlace(organizationId, url))
    } catch {
      return text
    }
  }
  const mcpServers = definition.mcpServers.map((server) =>
    server.sealedHeaders === null ? server : { ...server, sealedHeaders: renewed(server.sealedHeaders, server.url) },
  )
  return { ...definition, mcpServers }
}

/** The label of a definition that was sealed with the current secret. Without sealed headers it has none. */
export function labelOf({ mcpServers }: AgentDefinition, { current }: Fingerprints): Pick<Update, '$set' | '$unset'> {
  return mcpServers.some(({ sealedHeaders }) => sealedHeaders !== null)
    ? { $set: { secretFingerprint: current } }
    : { $unset: { secretFingerprint: '' } }
}

interface Deps {
  readonly collections: Pick<Collections, 'agents' | 'agentVersions'>
  readonly secrets: SealedTexts
  readonly fingerprints: Fingerprints
}

/** What in inference depends on the installation's secret. */
export function secretDependents(deps: Deps): readonly [Dependents<AgentRecord>, Dependents<AgentVersion>] {
  const { agents, agentVersions } = deps.collections
  return [
    { kind: 'agents', collection: agents, move: (agent) => reseal(deps, agents, agent) },
    { kind: 'agent_versions', collection: agentVersions, move: (version) => reseal(deps, agentVersions, version) },
  ]
}

async function reseal<T extends AgentRecord | AgentVersion>(
  { secrets, fingerprints }: Deps,
  collection: Dependents<T>['collection'],
  { _id, organizationId, definition: stored, secretFingerprint }: T,
): Promise<void> {
  const before = readDefinition(stored)
  const { $set, $unset } = labelOf(before, fingerprints)
  if (!$set && secretFingerprint === undefined) return
  const definition = storedDefinition(renewSealed(secrets, organizationId, before))
  await collection.findOneAndUpdate({ _id, definition: stored }, { $set: { definition, ...$set }, ...($unset && { $unset }) })
}
