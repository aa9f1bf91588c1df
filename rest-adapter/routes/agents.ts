import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import * as operations from '../contract/agents.ts'
import { PAGE_INFO } from '../http/lists.ts'
import { createRoute, deleteRoute, listRoute, readRoute, updateRoute } from '../http/resource-routes.ts'
import type { JsonObject, Route } from '../http/route.ts'
import { unixSeconds } from '../http/values.ts'

const AGENT = `id code name model { id } instructions collections { id } mcpServers { name url headerNames allowedTools } temperature topP maxOutputTokens responseSchema maxSteps maxCost version
  createdAt updatedAt`

type AgentData = Selected<'Agent', typeof AGENT>

const CREATE = gatewayOperation(`mutation CreateAgent($input: CreateAgentInput!) { createAgent(input: $input) { agent { ${AGENT} } } }`)
const LIST = gatewayOperation(`query Agents($first: Int!, $after: String, $order: SortOrder) {
  agents(first: $first, after: $after, order: $order) { edges { node { ${AGENT} } } ${PAGE_INFO} } }`)
const GET = gatewayOperation(`query Agent($id: ID!) { agent(id: $id) { ${AGENT} } }`)
const UPDATE = gatewayOperation(`mutation UpdateAgent($input: UpdateAgentInput!) { updateAgent(input: $input) { agent { ${AGENT} } } }`)
const DELETE = gatewayOperation('mutation DeleteAgent($id: ID!) { deleteAgent(id: $id) { id } }')

const NAMES = { maxCost: 'max_cost_usd' }

function toAgent(data: AgentData): operations.Agent {
  return {
    id: data.id,
    object: 'agent',
    created_at: unixSeconds(data.createdAt),
    updated_at: unixSeconds(data.updatedAt),
    code: data.code,
    name: data.name,
    model: data.model?.id ?? null,
    instructions: data.instructions,
    collection_ids: data.collections.flatMap((collection) => collection?.id ?? []),
    mcp_servers: data.mcpServers.map(({ name, url, headerNames, allowedTools }) => ({
      name,
      url,
      header_names: headerNames,
      allowed_tools: allowedTools,
    })),
    temperature: data.temperature,
    top_p: data.topP,
    max_output_tokens: data.maxOutputTokens,
    response_schema: data.responseSchema as operations.Agent['response_schema'],
    max_steps: data.maxSteps,
    max_cost_usd: data.maxCost,
    version: data.version,
  }
}

/** Converts the body to the input. Absent fields stay absent. */
function toInput(body: JsonObject): JsonObject {
  const { code, name, model, instructions, temperature } = body
  return {
    ...{ code, name, model, instructions, temperature },
    collectionIds: body.collection_ids,
    mcpServers: (body.mcp_servers as readonly JsonObject[] | null | undefined)?.map(({ allowed_tools: allowedTools, ...server }) => ({
      ...server,
      allowedTools,
    })),
    topP: body.top_p,
    maxOutputTokens: body.max_output_tokens,
    responseSchema: body.response_schema,
    maxSteps: body.max_steps,
    maxCost: body.max_cost_usd,
  }
}

export const agentRoutes: readonly Route[] = [
  createRoute(operations.createAgent, CREATE, toInput, (data) => toAgent(data.createAgent.agent), NAMES),
  listRoute(operations.listAgents, LIST, (data) => data.agents, toAgent),
  readRoute(operations.getAgent, GET, 'agent', ({ agent }) => agent && toAgent(agent)),
  updateRoute(operations.updateAgent, UPDATE, toInput, (data) => toAgent(data.updateAgent.agent), NAMES),
  deleteRoute(operations.deleteAgent, DELETE, 'agent', (data) => data.deleteAgent.id),
]
