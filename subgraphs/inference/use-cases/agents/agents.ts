import { refuse } from '../../../common/check.ts'
import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import type { ReadBudget } from '../../../common/documents/long-records.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import {
  type AgentDefinition,
  type AgentInput,
  agentDefinition,
  checkAgentCode,
  readDefinition,
  storedDefinition,
} from '../../domain/agents/definition.ts'
import type { SealHeaders } from '../../domain/agents/mcp-servers.ts'
import type { Model } from '../../domain/catalog.ts'
import { permits } from '../../domain/engines/residency.ts'
import { admit } from '../calls/admit.ts'
import type { Ports, RequestContext, With } from '../deps.ts'
import { purgeAgent } from '../purge.ts'
import type { AgentRecord } from '../tables.ts'
import { storeVersion } from '../versions.ts'
import { headersSealName } from './mcp-tools.ts'
import { checkSchemas } from './schema-replies.ts'

/** Most agents of one organization. */
const MAX_AGENTS = 1_000
const AGENT_ID = /^agt_/
/** Most agents of one read: an agent has up to some 100 KB. */
const AGENTS_PER_READ = 50
/** Most attempts at a change when other changes of the same agent come first. */
const MAX_ATTEMPTS = 5

/**
 * Creates an agent with version 1. After a `KisError` nothing is stored.
 * @throws {KisError} `already_exists`: the organization has an agent with this code.
 * @throws {KisError} `model_not_found`: the caller may not use the model, or it does not exist.
 * @throws {KisError} `not_found`: a collection does not exist.
 * @throws {KisError} `residency_policy_violation`: the policy forbids the model or an MCP server.
 * @throws {KisError} `storage_quota_exceeded`: the organization has 1,000 agents.
 * @throws {KisError} `invalid_request`, `unsupported_value` and the like: the input is invalid.
 */
export async function createAgent(
  deps: With<'principals'>,
  requestContext: RequestContext,
  input: AgentInput & { readonly code?: string | null },
): Promise<AgentRecord> {
  const principal = requireScope(requestContext.caller, 'agents')
  const { organizationId } = principal
  const code = checkAgentCode(input.code)
  const definition = agentDefinition(input, sealingFor(deps, organizationId))
  await checkReferences(deps, { ...requestContext, caller: principal }, definition)
  if ((await deps.collections.agents.countDocuments({ organizationId, listed: true })) >= MAX_AGENTS)
    throw new KisError('storage_quota_exceeded', `An organization has at most ${MAX_AGENTS} agents.`)
  const now = deps.clock.now()
  const agent: AgentRecord = {
    _id: deps.ids('agt'),
    organizationId,
    code,
    listed: true,
    version: 1,
    definition: storedDefinition(definition),
    createdAt: now,
    updatedAt: now,
  }
  await storeVersion(deps.collections.agentVersions, agent)
  await deps.collections.agents.insertOne(agent).catch(async (error) => {
    // After any other failure the agent may have been stored, so its version stays.
    if (error instanceof DuplicateKey) await deps.collections.agentVersions.findOneAndDelete({ _id: `${agent._id}_1` })
    throw duplicateCode(error, code)
  })
  return agent
}

/**
 * Changes an agent and creates a new version. A field that is left out retains its value; null restores its default.
 * @throws {KisError} as `createAgent`.
 * @throws {KisError} `not_found`: the organization has no such agent.
 * @throws {KisError} `service_unavailable`: too many changes of the agent happen at once.
 */
export async function updateAgent(
  deps: With<'principals'>,
  requestContext: RequestContext,
  { id, code, ...changes }: AgentInput & { readonly id: string; readonly code?: string | null },
): Promise<AgentRecord> {
  const principal = requireScope(requestContext.caller, 'agents')
  const newCode = code == null ? {} : { code: checkAgentCode(code) }
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const agent = await getAgent(deps, principal, id, 'input.id')
    const provided = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
    const before = readDefinition(agent.definition)
    const definition = agentDefinition({ ...toAgentInput(before), ...provided }, sealingFor(deps, agent.organizationId), before)
    // A collection that was deleted meanwhile does not prevent other changes of the agent.
    await checkReferences(deps, { ...requestContext, caller: principal }, definition, before.collectionIds)
    const next = {
      ...agent,
      ...newCode,
      version: agent.version + 1,
      definition: storedDefinition(definition),
      updatedAt: deps.clock.now(),
    }
    await storeVersion(deps.collections.agentVersions, next)
    const { version, definition: stored, updatedAt } = next
    const updated = await deps.collections.agents
      .findOneAndUpdate({ _id: id, listed: true, version: agent.version }, { $set: { ...newCode, version, definition: stored, updatedAt } })
      .catch((error) => {
        throw duplicateCode(error, code ?? '')
      })
    if (updated) return updated
  }
  throw new KisError('service_unavailable', 'Too many requests change the agent at once.', { retryAfterMs: 1_000 })
}

/**
 * Deletes an agent with its versions. Its runs stay readable.
 * @throws {NotFound} the organization has no such agent.
 */
export async function deleteAgent(deps: Ports, { caller }: RequestContext, id: string): Promise<void> {
  const { organizationId } = requireScope(caller, 'agents')
  const deleted = await deps.collections.agents.findOneAndUpdate(
    { _id: id, organizationId, listed: true },
    { $set: { listed: false, code: id, forgetAt: deps.clock.now() } },
  )
  if (!deleted) throw new NotFound('agent', id, 'id')
  await purgeAgent(deps, deleted)
}

/**
 * Returns the agent with this id, or with this code when `id` is `agent/<code>`.
 * @throws {NotFound} with `param`: the agent does not exist, or belongs to another organization.
 */
export async function getAgent({ collections }: Ports, { organizationId }: Principal, id: string, param = 'id'): Promise<AgentRecord> {
  const code = /^agent\/(.+)$/s.exec(id)?.[1]
  const agent = await collections.agents.findOne(code === undefined ? { _id: id, organizationId, listed: true } : { organizationId, code })
  if (!agent?.listed) throw new NotFound('agent', id, param)
  return agent
}

/** Returns the agent, or null when it does not exist, is deleted or belongs to another organization. */
export async function findAgent(deps: Ports, requestContext: RequestContext, id: string): Promise<AgentRecord | null> {
  return getAgent(deps, requireScope(requestContext.caller, 'agents'), id).catch((error) => {
    if (error instanceof NotFound) return null
    throw error
  })
}

export async function listAgents(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  page: OrderedPage,
  budget: ReadBudget,
): Promise<Connection<AgentRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  return listById(collections.agents, { organizationId, listed: true }, page, AGENT_ID, budget)
}

/**
 * Lists the agents of the caller's organization that search a collection. It requires the permission to change the
 * collection.
 */
export async function listAgentsOf(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  collectionId: string,
): Promise<readonly AgentRecord[]> {
  const { organizationId } = requireScope(caller, 'knowledge:write')
  const found: AgentRecord[] = []
  for (let after = ''; ; ) {
    const page = await collections.agents.find(
      { organizationId, listed: true, _id: { $gt: after } },
      { sort: { _id: 1 }, limit: AGENTS_PER_READ },
    )
    found.push(...page.filter(({ definition }) => readDefinition(definition).collectionIds.includes(collectionId)))
    if (page.length < AGENTS_PER_READ) return found
    after = page.at(-1)!._id
  }
}

/** Returns the definition of the agent in this version, or null when it is deleted. */
export async function findVersion(
  { collections }: Ports,
  organizationId: string,
  agentId: string,
  version: number,
): Promise<AgentDefinition | null> {
  const stored = await collections.agentVersions.findOne({ _id: `${agentId}_${version}`, organizationId })
  return stored && readDefinition(stored.definition)
}

/**
 * Returns the model if the caller may use it.
 * @throws {KisError} `model_not_found` or `residency_policy_violation`, with `modelParam` as the path.
 */
export function admitModel(deps: Ports, { caller }: { readonly caller: Principal }, modelId: string, modelParam: string): Model {
  return admit(
    deps.catalog,
    { ...caller, scopes: [...caller.scopes, 'inference'] },
    {
      scope: 'inference',
      kind: 'chat',
      modelParam,
      check: () => ({ model: modelId }),
    },
  ).model
}

async function checkReferences(
  deps: With<'principals'>,
  requestContext: RequestContext & { readonly caller: Principal },
  { modelId, collectionIds, mcpServers, responseSchema }: AgentDefinition,
  knownIds: readonly string[] = [],
): Promise<void> {
  if (responseSchema)
    await checkSchemas(deps, requestContext.caller, [{ schema: responseSchema, param: 'input.responseSchema' }], requestContext.signal)
  const model = admitModel(deps, requestContext, modelId, 'input.model')
  if (mcpServers.length > 0 && !model.supports.has('tools'))
    refuse('unsupported_value', 'input.mcpServers', `The model \`${modelId}\` calls no tools.`)
  if (mcpServers.length > 0) {
    // Host names go to DNS servers only if the policy that applies now permits it.
    const caller = await deps.principals.now(requestContext.caller)
    await Promise.all(mcpServers.map(({ url }, i) => checkServer(deps, { ...requestContext, caller }, url, `input.mcpServers[${i}].url`)))
  }
  // Includes the collections that the agent has already: the caller must be allowed to read them.
  const described = await deps.knowledge.describe(collectionIds, requestContext)
  const found = new Set([...knownIds, ...described.map(({ id }) => id)])
  for (const [i, id] of collectionIds.entries()) if (!found.has(id)) throw new NotFound('collection', id, `input.collectionIds[${i}]`)
}

async function checkServer(
  { mcp }: Ports,
  { caller, signal }: RequestContext & { readonly caller: Principal },
  url: string,
  param: string,
): Promise<void> {
  if (!mcp.allows(url))
    refuse(
      'unsupported_value',
      param,
      'Only http and https addresses of public hosts on ports 80 and 443, without a user name, are called.',
    )
  if (!permits(caller.residencyPolicy, mcp.isLocal(url) ? 'local' : 'cloud'))
    throw new KisError('residency_policy_violation', "The organization's residency policy permits servers of the operator only.", { param })
  if (!(await mcp.mayReach(url, signal))) refuse('unsupported_value', param, 'The host of the address is unknown, or not public.')
}

function sealingFor({ secrets }: Ports, organizationId: string): SealHeaders {
  return (headers, url) => secrets.seal(JSON.stringify(headers), headersSealName(organizationId, url))
}

function toAgentInput({ modelId, collectionIds, sampling, responseSchema, ...rest }: AgentDefinition): AgentInput {
  return {
    ...rest,
    model: modelId,
    collectionIds,
    responseSchema,
    temperature: sampling.temperature ?? null,
    topP: sampling.top_p ?? null,
    maxOutputTokens: sampling.max_completion_tokens ?? null,
  }
}

function duplicateCode(error: unknown, code: string): unknown {
  if (!(error instanceof DuplicateKey)) return error
  return new KisError('already_exists', `An agent with code \`${code}\` exists in this organization.`, {
    param: 'input.code',
    cause: error,
  })
}
