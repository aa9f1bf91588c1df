import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import { type AgentDefinition, readDefinition } from '../domain/agents/definition.ts'
import { createAgent, deleteAgent, getAgent, updateAgent } from '../use-cases/agents/agents.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { AgentRecord } from '../use-cases/tables.ts'
import type { AgentResolvers, MutationResolvers, QueryResolvers } from './generated.ts'
import { longRecordsById } from './long-records-by-id.ts'

/** An agent with what its definition says. */
export interface AgentView extends Omit<AgentRecord, 'definition'> {
  readonly definition: AgentDefinition
}

export const agentQueries: QueryResolvers = {
  agent: (_parent, { id }, { deps, caller }) => findAgent(deps, requireScope(caller, 'agents'), id),
  async agents(_parent, args, { deps, caller, budget }) {
    const { organizationId } = requireScope(caller, 'agents')
    const page = await longRecordsById(deps.collections.agents, { organizationId, listed: true }, args, /^agt_/, budget)
    return { ...page, edges: page.edges.map(({ node, cursor }) => ({ node: viewOf(node), cursor })) }
  },
}

export const agentMutations: MutationResolvers = {
  async createAgent(_parent, { input }, { deps, ...ask }) {
    return { agent: viewOf(await createAgent(deps, ask, input)) }
  },
  async updateAgent(_parent, { input }, { deps, ...ask }) {
    return { agent: viewOf(await updateAgent(deps, ask, input)) }
  },
  async deleteAgent(_parent, { id }, { deps, ...ask }) {
    await deleteAgent(deps, ask, id)
    return { id }
  },
}

export const AgentFields: AgentResolvers = {
  id: ({ _id }) => _id,
  name: ({ definition }) => definition.name,
  model: ({ definition }, _args, { deps }) => deps.catalog.find(definition.modelId) ?? null,
  instructions: ({ definition }, _args, { budget }) => budget.taken(definition.instructions),
  collections: ({ definition }) => definition.collectionIds.map((id) => ({ id })),
  mcpServers: ({ definition }) => definition.mcpServers,
  temperature: ({ definition }) => definition.sampling.temperature ?? null,
  topP: ({ definition }) => definition.sampling.top_p ?? null,
  maxOutputTokens: ({ definition }) => definition.sampling.max_completion_tokens ?? null,
  responseSchema: ({ definition }) => definition.responseSchema,
  maxSteps: ({ definition }) => definition.maxSteps,
  maxCost: ({ definition }) => definition.maxCost,
  runs: ({ _id, organizationId }, args, { deps, budget }) =>
    longRecordsById(deps.collections.runs, { organizationId, agentId: _id }, args, /^run_/, budget),
  __resolveReference: ({ id }, { deps, caller }) => findAgent(deps, requireScope(caller, 'agents'), id),
}

/** Null when it is absent, deleted or another organization's. */
export async function findAgent(deps: ServedDeps, principal: Principal, id: string): Promise<AgentView | null> {
  try {
    return viewOf(await getAgent(deps, principal, id))
  } catch (error) {
    if (error instanceof NotFound) return null
    throw error
  }
}

function viewOf(agent: AgentRecord): AgentView {
  return { ...agent, definition: readDefinition(agent.definition) }
}
