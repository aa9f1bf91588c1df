import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, type PageArguments, pageOf } from '../../common/link/connection.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { type AgentDefinition, type AgentInput, readDefinition } from '../domain/agents/definition.ts'
import { createAgent, deleteAgent, getAgent, updateAgent } from '../use-cases/agents/agents.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { AgentRecord } from '../use-cases/tables.ts'

type Context = ResolverContext<ServedDeps>
export type ListArguments = PageArguments & { readonly order?: 'asc' | 'desc' | null }

/** An agent with what its definition says. */
interface AgentView extends Omit<AgentRecord, 'definition'> {
  readonly definition: AgentDefinition
}

export const agentQueries = {
  agent: (_parent: unknown, { id }: { id: string }, { deps, caller }: Context) => findAgent(deps, requireScope(caller, 'agents'), id),
  async agents(_parent: unknown, args: ListArguments, { deps, caller }: Context) {
    const { organizationId } = requireScope(caller, 'agents')
    const page = pageOf(args, /^agt_/)
    const { filter, sort } = idRange(args, page.after)
    const agents = await deps.collections.agents.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit })
    return connectionOf(agents.map(viewOf), page, ({ _id }) => _id)
  },
}

export const agentMutations = {
  async createAgent(_parent: unknown, { input }: { input: AgentInput & { readonly code: string } }, { deps, ...ask }: Context) {
    return { agent: viewOf(await createAgent(deps, ask, input)) }
  },
  async updateAgent(_parent: unknown, { input }: { input: Parameters<typeof updateAgent>[2] }, { deps, ...ask }: Context) {
    return { agent: viewOf(await updateAgent(deps, ask, input)) }
  },
  async deleteAgent(_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) {
    await deleteAgent(deps, ask, id)
    return { id }
  },
}

export const SortOrderValues = { ASC: 'asc', DESC: 'desc' }

export const AgentFields = {
  id: ({ _id }: AgentView) => _id,
  name: ({ definition }: AgentView) => definition.name,
  model: ({ definition }: AgentView, _args: unknown, { deps }: Context) => deps.catalog.find(definition.modelId) ?? null,
  instructions: ({ definition }: AgentView) => definition.instructions,
  collections: ({ definition }: AgentView) => definition.collectionIds.map((id) => ({ id })),
  mcpServers: ({ definition }: AgentView) => definition.mcpServers,
  temperature: ({ definition }: AgentView) => definition.sampling.temperature ?? null,
  topP: ({ definition }: AgentView) => definition.sampling.top_p ?? null,
  maxOutputTokens: ({ definition }: AgentView) => definition.sampling.max_completion_tokens ?? null,
  responseSchema: ({ definition }: AgentView) => definition.responseSchema,
  maxSteps: ({ definition }: AgentView) => definition.maxSteps,
  maxCost: ({ definition }: AgentView) => definition.maxCost,
  async runs({ _id, organizationId }: AgentView, args: ListArguments, { deps }: Context) {
    const page = pageOf(args, /^run_/)
    const { filter, sort } = idRange(args, page.after)
    const runs = await deps.collections.runs.find({ organizationId, agentId: _id, ...filter }, { sort, limit: page.limit })
    return connectionOf(runs, page, (run) => run._id)
  },
  __resolveReference: ({ id }: { id: string }, { deps, caller }: Context) => findAgent(deps, requireScope(caller, 'agents'), id),
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

/** A page of records by id, which is by the time of their making. */
export function idRange({ order }: ListArguments, after: string | null) {
  const descending = (order ?? 'desc') === 'desc'
  return {
    filter: after === null ? {} : { _id: descending ? { $lt: after } : { $gt: after } },
    sort: { _id: descending ? (-1 as const) : (1 as const) },
  }
}
