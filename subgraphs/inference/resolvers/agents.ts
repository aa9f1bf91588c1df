import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, type PageArguments, pageOf } from '../../common/link/connection.ts'
import { type AgentDefinition, readDefinition } from '../domain/agents/definition.ts'
import { createAgent, deleteAgent, getAgent, updateAgent } from '../use-cases/agents/agents.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { AgentRecord } from '../use-cases/tables.ts'
import type { AgentResolvers, MutationResolvers, QueryResolvers } from './generated.ts'

export type ListArguments = PageArguments & { readonly order?: 'asc' | 'desc' | null }

/** An agent with the fields of its definition. */
export interface AgentView extends Omit<AgentRecord, 'definition'> {
  readonly definition: AgentDefinition
}

export const agentQueries: QueryResolvers = {
  agent: (_parent, { id }, { deps, caller }) => findAgent(deps, requireScope(caller, 'agents'), id),
  async agents(_parent, args, { deps, caller }) {
    const { organizationId } = requireScope(caller, 'agents')
    const page = pageOf(args, /^agt_/)
    const { filter, sort } = idRange(args, page.after)
    const agents = await deps.collections.agents.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit })
    return connectionOf(agents.map(viewOf), page, ({ _id }) => _id)
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
  instructions: ({ definition }) => definition.instructions,
  collections: ({ definition }) => definition.collectionIds.map((id) => ({ id })),
  mcpServers: ({ definition }) => definition.mcpServers,
  temperature: ({ definition }) => definition.sampling.temperature ?? null,
  topP: ({ definition }) => definition.sampling.top_p ?? null,
  maxOutputTokens: ({ definition }) => definition.sampling.max_completion_tokens ?? null,
  responseSchema: ({ definition }) => definition.responseSchema,
  maxSteps: ({ definition }) => definition.maxSteps,
  maxCost: ({ definition }) => definition.maxCost,
  async runs({ _id, organizationId }, args, { deps }) {
    const page = pageOf(args, /^run_/)
    const { filter, sort } = idRange(args, page.after)
    const runs = await deps.collections.runs.find({ organizationId, agentId: _id, ...filter }, { sort, limit: page.limit })
    return connectionOf(runs, page, (run) => run._id)
  },
  __resolveReference: ({ id }, { deps, caller }) => findAgent(deps, requireScope(caller, 'agents'), id),
}

/** Null: it does not exist, is deleted, or belongs to another organization. */
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

/** A page of records by id, and so by creation time. */
export function idRange({ order }: ListArguments, after: string | null) {
  const descending = (order ?? 'desc') === 'desc'
  return {
    filter: after === null ? {} : { _id: descending ? { $lt: after } : { $gt: after } },
    sort: { _id: descending ? (-1 as const) : (1 as const) },
  }
}
