import { mapNodes } from '../../common/link/connection.ts'
import { type AgentDefinition, readDefinition } from '../domain/agents/definition.ts'
import { createAgent, deleteAgent, findAgent, listAgents, listAgentsOf, updateAgent } from '../use-cases/agents/agents.ts'
import { listRuns } from '../use-cases/agents/read-runs.ts'
import { listThreads } from '../use-cases/agents/threads.ts'
import type { RequestContext, ServedDeps } from '../use-cases/deps.ts'
import type { AgentRecord } from '../use-cases/tables.ts'
import { findStoredVersion, listVersions, type StoredVersion } from '../use-cases/versions.ts'
import type { AgentResolvers, AgentVersionResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

/** An agent with the fields of its definition. */
export interface AgentView extends Omit<AgentRecord, 'definition'> {
  readonly definition: AgentDefinition
}

/** A version of an agent with the fields of its definition. */
export interface AgentVersionView extends Pick<StoredVersion, 'version' | 'createdAt'> {
  readonly definition: AgentDefinition
}

export const agentQueries: QueryResolvers = {
  agent: (_parent, { id }, { deps, ...requestContext }) => findView(deps, requestContext, id),
  async agents(_parent, args, { deps, budget, ...requestContext }) {
    return mapNodes(await listAgents(deps, requestContext, args, budget), toView)
  },
  agentsOfCollection: async (_parent, { collectionId }, { deps, ...requestContext }) =>
    (await listAgentsOf(deps, requestContext, collectionId)).map(toView),
}

export const agentMutations: MutationResolvers = {
  async createAgent(_parent, { input }, { deps, ...requestContext }) {
    return { agent: toView(await createAgent(deps, requestContext, input)) }
  },
  async updateAgent(_parent, { input }, { deps, ...requestContext }) {
    return { agent: toView(await updateAgent(deps, requestContext, input)) }
  },
  async deleteAgent(_parent, { id }, { deps, ...requestContext }) {
    await deleteAgent(deps, requestContext, id)
    return { id }
  },
}

/** The common fields of an agent and a version of it. */
const definitionFields = {
  name: ({ definition }) => definition.name,
  model: ({ definition }, _args, { deps }) => deps.catalog.find(definition.modelId) ?? null,
  instructions: ({ definition }, _args, { budget }) => budget.charged(definition.instructions),
  collections: ({ definition }) => definition.collectionIds.map((id) => ({ id })),
  mcpServers: ({ definition }) => definition.mcpServers,
  temperature: ({ definition }) => definition.sampling.temperature ?? null,
  topP: ({ definition }) => definition.sampling.top_p ?? null,
  maxOutputTokens: ({ definition }) => definition.sampling.max_completion_tokens ?? null,
  responseSchema: ({ definition }) => definition.responseSchema,
  maxSteps: ({ definition }) => definition.maxSteps,
  maxCost: ({ definition }) => definition.maxCost,
} satisfies AgentVersionResolvers

export const AgentVersionFields: AgentVersionResolvers = definitionFields

export const AgentFields: AgentResolvers = {
  ...definitionFields,
  id: ({ _id }) => _id,
  runs: (agent, args, { deps, budget }) => listRuns(deps, agent, args, budget),
  async versions(agent, args, { deps, budget }) {
    return mapNodes(await listVersions(deps.collections.agentVersions, agent, args, budget), toVersionView)
  },
  async atVersion(agent, { version }, { deps }) {
    const stored = await findStoredVersion(deps.collections.agentVersions, agent, version)
    return stored && toVersionView(stored)
  },
  threads: (agent, args, { deps, budget }) => listThreads(deps, agent, args, budget),
  __resolveReference: ({ id }, { deps, ...requestContext }) => findView(deps, requestContext, id),
}

/** Returns null if the agent does not exist, is deleted, or belongs to another organization. */
export async function findView(deps: ServedDeps, requestContext: RequestContext, id: string): Promise<AgentView | null> {
  const agent = await findAgent(deps, requestContext, id)
  return agent && toView(agent)
}

function toVersionView({ definition, version, createdAt }: StoredVersion): AgentVersionView {
  return { version, createdAt, definition: readDefinition(definition) }
}

/** Returns the agent with its definition parsed, as its GraphQL type shows it. */
export function toView(agent: AgentRecord): AgentView {
  return { ...agent, definition: readDefinition(agent.definition) }
}
