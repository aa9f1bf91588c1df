import { refuse } from '../../../common/check.ts'
import type { AnswerBudget } from '../../../common/documents/answer-budget.ts'
import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
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
import type { AskContext, Ports } from '../deps.ts'
import { forgetAgent } from '../forget.ts'
import type { AgentRecord } from '../tables.ts'
import { headersPlace } from './mcp-tools.ts'
import { checkSchemas } from './schema-answers.ts'

/** Agents of one organization. */
const MAX_AGENTS = 1_000
const AGENT_ID = /^agt_/
/** Changes of one agent that may overtake a change that is being made. */
const MAX_ATTEMPTS = 5

/**
 * @throws {KisError} nothing is kept: `already_exists`, `model_not_found`, `residency_policy_violation`, `not_found` (a
 * collection) and what is wrong with the input.
 */
export async function createAgent(
  deps: Ports,
  ask: AskContext,
  input: AgentInput & { readonly code?: string | null },
): Promise<AgentRecord> {
  const principal = requireScope(ask.caller, 'agents')
  const { organizationId } = principal
  const code = checkAgentCode(input.code)
  const definition = agentDefinition(input, sealingFor(deps, organizationId))
  await checkReferences(deps, { ...ask, caller: principal }, definition)
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
  await keepVersion(deps, agent)
  await deps.collections.agents.insertOne(agent).catch(async (error) => {
    // Of any other failure nobody knows whether the agent was recorded.
    if (error instanceof DuplicateKey) await deps.collections.agentVersions.findOneAndDelete({ _id: `${agent._id}_1` })
    throw codeTaken(error, code)
  })
  return agent
}

/**
 * What is left out stays as it is; null gives the default back. Makes a new version.
 * @throws as `createAgent`, and `not_found`.
 */
export async function updateAgent(
  deps: Ports,
  ask: AskContext,
  { id, code, ...changes }: AgentInput & { readonly id: string; readonly code?: string | null },
): Promise<AgentRecord> {
  const principal = requireScope(ask.caller, 'agents')
  const newCode = code == null ? {} : { code: checkAgentCode(code) }
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const agent = await getAgent(deps, principal, id, 'input.id')
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
    const before = readDefinition(agent.definition)
    const definition = agentDefinition({ ...toAgentInput(before), ...given }, sealingFor(deps, agent.organizationId), before)
    await checkReferences(deps, { ...ask, caller: principal }, definition)
    const next = { ...agent, ...newCode, version: agent.version + 1, definition: storedDefinition(definition), updatedAt: deps.clock.now() }
    await keepVersion(deps, next)
    const { version, definition: stored, updatedAt } = next
    const updated = await deps.collections.agents
      .findOneAndUpdate({ _id: id, listed: true, version: agent.version }, { $set: { ...newCode, version, definition: stored, updatedAt } })
      .catch((error) => {
        throw codeTaken(error, code ?? '')
      })
    if (updated) return updated
  }
  throw new KisError('service_unavailable', 'The agent is being changed by many at once.', { retryAfterMs: 1_000 })
}

/** It goes with its versions; its runs stay readable. @throws {NotFound} */
export async function deleteAgent(deps: Ports, { caller }: AskContext, id: string): Promise<void> {
  const { organizationId } = requireScope(caller, 'agents')
  const deleted = await deps.collections.agents.findOneAndUpdate(
    { _id: id, organizationId, listed: true },
    { $set: { listed: false, code: id, forgetAt: deps.clock.now() } },
  )
  if (!deleted) throw new NotFound('agent', id, 'id')
  await forgetAgent(deps, deleted)
}

/** By id, or by `agent/<code>`. @throws {NotFound} with `param`; also for another organization's. */
export async function getAgent({ collections }: Ports, { organizationId }: Principal, id: string, param = 'id'): Promise<AgentRecord> {
  const code = /^agent\/(.+)$/s.exec(id)?.[1]
  const agent = await collections.agents.findOne(code === undefined ? { _id: id, organizationId, listed: true } : { organizationId, code })
  if (!agent?.listed) throw new NotFound('agent', id, param)
  return agent
}

/** Null when it is absent, deleted or another organization's. */
export async function findAgent(deps: Ports, ask: AskContext, id: string): Promise<AgentRecord | null> {
  return getAgent(deps, requireScope(ask.caller, 'agents'), id).catch((error) => {
    if (error instanceof NotFound) return null
    throw error
  })
}

/** The caller's organization's. */
export async function listAgents(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: AskContext,
  page: OrderedPage,
  budget: AnswerBudget,
): Promise<Connection<AgentRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  return listById(collections.agents, { organizationId, listed: true }, page, AGENT_ID, budget)
}

/** What the agent was in that version. */
export async function findVersion(
  { collections }: Ports,
  organizationId: string,
  agentId: string,
  version: number,
): Promise<AgentDefinition | null> {
  const kept = await collections.agentVersions.findOne({ _id: `${agentId}_${version}`, organizationId })
  return kept && readDefinition(kept.definition)
}

/** The model, where the caller may use it. @throws {KisError} with `modelParam` as its path. */
export function admitModel(deps: Ports, { caller }: { readonly caller: Principal }, modelId: string, modelParam: string): Model {
  return admit(
    deps.catalog,
    { ...caller, scopes: [...caller.scopes, 'inference'] },
    {
      audience: 'clients',
      kind: 'chat',
      modelParam,
      check: () => ({ model: modelId }),
    },
  ).model
}

async function checkReferences(
  deps: Ports,
  ask: AskContext & { readonly caller: Principal },
  { modelId, collectionIds, mcpServers, responseSchema }: AgentDefinition,
): Promise<void> {
  if (responseSchema) await checkSchemas(deps, ask.caller, [{ schema: responseSchema, param: 'input.responseSchema' }], ask.signal)
  const model = admitModel(deps, ask, modelId, 'input.model')
  if (mcpServers.length > 0 && !model.supports.has('tools'))
    refuse('unsupported_value', 'input.mcpServers', `The model \`${modelId}\` calls no tools.`)
  await Promise.all(mcpServers.map(({ url }, i) => checkServer(deps, ask, url, `input.mcpServers[${i}].url`)))
  const found = new Set((await deps.knowledge.describe(collectionIds, ask)).map(({ id }) => id))
  for (const [i, id] of collectionIds.entries()) if (!found.has(id)) throw new NotFound('collection', id, `input.collectionIds[${i}]`)
}

async function checkServer(
  { mcp }: Ports,
  { caller, signal }: AskContext & { readonly caller: Principal },
  url: string,
  param: string,
): Promise<void> {
  if (!mcp.mayAsk(url))
    refuse('unsupported_value', param, 'Only http and https addresses of public hosts on ports 80 and 443, without a user name, are asked.')
  if (!permits(caller.residencyPolicy, mcp.isLocal(url) ? 'local' : 'cloud'))
    throw new KisError('residency_policy_violation', "The organization's residency policy permits servers of the operator only.", { param })
  if (!(await mcp.mayReach(url, signal))) refuse('unsupported_value', param, 'The host of the address is unknown, or not public.')
}

function sealingFor({ secrets }: Ports, organizationId: string): SealHeaders {
  return (headers, url) => secrets.seal(JSON.stringify(headers), headersPlace(organizationId, url))
}

/**
 * The version comes first: an agent that can be seen has its version. One that no agent came to is written over by the
 * next try.
 */
async function keepVersion({ collections }: Ports, { _id, version, organizationId, definition, updatedAt }: AgentRecord): Promise<void> {
  await collections.agentVersions.findOneAndUpdate(
    { _id: `${_id}_${version}` },
    { $set: { organizationId, definition, createdAt: updatedAt } },
    { upsert: true },
  )
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

function codeTaken(error: unknown, code: string): unknown {
  if (!(error instanceof DuplicateKey)) return error
  return new KisError('already_exists', `An agent with code \`${code}\` exists in this organization.`, {
    param: 'input.code',
    cause: error,
  })
}
