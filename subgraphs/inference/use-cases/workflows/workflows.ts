import { checkLength, refuse, textAt } from '../../../common/check.ts'
import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import type { ReadBudget } from '../../../common/documents/long-records.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import { checkPlain } from '../../../common/plain-text.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { checkAgentCode } from '../../domain/agents/definition.ts'
import type { ModelKind } from '../../domain/catalog.ts'
import { listSchemas, type Task, type WorkflowDefinition, workflowDefinition } from '../../domain/workflows/definition.ts'
import { getAgent } from '../agents/agents.ts'
import { checkSchemas } from '../agents/schema-replies.ts'
import { admit } from '../calls/admit.ts'
import type { Ports, RequestContext } from '../deps.ts'
import { purgeWorkflow } from '../purge.ts'
import type { WorkflowRecord } from '../tables.ts'
import { storeVersion } from '../versions.ts'

/** Most workflows of one organization. */
const MAX_WORKFLOWS = 1_000
const WORKFLOW_ID = /^wfl_/
/** Most attempts at a change when other changes of the same workflow come first. */
const MAX_ATTEMPTS = 5
const MAX_NAME = 200

interface WorkflowInput {
  readonly code?: string | null
  readonly name?: string | null
  readonly definition?: unknown
}

/**
 * Creates a workflow with version 1. After a `KisError` nothing is stored.
 * @throws {KisError} `already_exists`: the organization has a workflow with this code.
 * @throws {KisError} `storage_quota_exceeded`: the organization has 1,000 workflows.
 * @throws {KisError} any other code, with the path in the definition: the definition is invalid, or names something
 * that the caller may not use.
 */
export async function createWorkflow(deps: Ports, requestContext: RequestContext, input: WorkflowInput): Promise<WorkflowRecord> {
  const principal = requireScope(requestContext.caller, 'agents')
  const { organizationId } = principal
  const code = checkAgentCode(input.code)
  const name = readName(input.name)
  const definition = workflowDefinition(input.definition, 'input.definition')
  await checkReferences(deps, { ...requestContext, caller: principal }, definition)
  if ((await deps.collections.workflows.countDocuments({ organizationId, listed: true })) >= MAX_WORKFLOWS)
    throw new KisError('storage_quota_exceeded', `An organization has at most ${MAX_WORKFLOWS} workflows.`)
  const now = deps.clock.now()
  const workflow: WorkflowRecord = {
    _id: deps.ids('wfl'),
    organizationId,
    code,
    name,
    listed: true,
    version: 1,
    definition: JSON.stringify(definition),
    createdAt: now,
    updatedAt: now,
  }
  await storeVersion(deps.collections.workflowVersions, workflow)
  await deps.collections.workflows.insertOne(workflow).catch(async (error) => {
    // After any other failure the workflow may have been stored, so its version stays.
    if (error instanceof DuplicateKey) await deps.collections.workflowVersions.findOneAndDelete({ _id: `${workflow._id}_1` })
    throw duplicateCode(error, code)
  })
  return workflow
}

/**
 * Changes a workflow and creates a new version. A field that is left out retains its value. Runs in progress continue
 * with their version.
 * @throws {KisError} as `createWorkflow`.
 * @throws {KisError} `not_found`: the organization has no such workflow.
 * @throws {KisError} `service_unavailable`: too many changes of the workflow happen at once.
 */
export async function updateWorkflow(
  deps: Ports,
  requestContext: RequestContext,
  { id, code, name, definition }: WorkflowInput & { readonly id: string },
): Promise<WorkflowRecord> {
  const principal = requireScope(requestContext.caller, 'agents')
  const changes = {
    ...(code != null && { code: checkAgentCode(code) }),
    ...(name != null && { name: readName(name) }),
    ...(definition != null && { definition: JSON.stringify(workflowDefinition(definition, 'input.definition')) }),
  }
  if (definition != null) await checkReferences(deps, { ...requestContext, caller: principal }, definition as WorkflowDefinition)
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const workflow = await getWorkflow(deps, principal, id, 'input.id')
    const next = { ...workflow, ...changes, version: workflow.version + 1, updatedAt: deps.clock.now() }
    await storeVersion(deps.collections.workflowVersions, next)
    const updated = await deps.collections.workflows
      .findOneAndUpdate(
        { _id: workflow._id, listed: true, version: workflow.version },
        { $set: { ...changes, version: next.version, updatedAt: next.updatedAt } },
      )
      .catch((error) => {
        throw duplicateCode(error, code ?? '')
      })
    if (updated) return updated
  }
  throw new KisError('service_unavailable', 'Too many requests change the workflow at once.', { retryAfterMs: 1_000 })
}

/**
 * Deletes a workflow. Its versions are deleted once its runs in progress have ended. All its runs stay readable.
 * @throws {NotFound} the organization has no such workflow.
 */
export async function deleteWorkflow(deps: Ports, { caller }: RequestContext, id: string): Promise<void> {
  const { organizationId } = requireScope(caller, 'agents')
  const deleted = await deps.collections.workflows.findOneAndUpdate(
    { _id: id, organizationId, listed: true },
    { $set: { listed: false, code: id, forgetAt: deps.clock.now() } },
  )
  if (!deleted) throw new NotFound('workflow', id, 'id')
  await purgeWorkflow(deps, deleted)
}

/**
 * Returns the workflow with this id, or with this code when `id` is `workflow/<code>`.
 * @throws {NotFound} with `param`: the workflow does not exist, or belongs to another organization.
 */
export async function getWorkflow(
  { collections }: Pick<Ports, 'collections'>,
  { organizationId }: Principal,
  id: string,
  param = 'id',
): Promise<WorkflowRecord> {
  const code = /^workflow\/(.+)$/s.exec(id)?.[1]
  const workflow = await collections.workflows.findOne(code === undefined ? { _id: id, organizationId } : { organizationId, code })
  if (!workflow?.listed) throw new NotFound('workflow', id, param)
  return workflow
}

/** Returns the workflow, or null when it does not exist, is deleted or belongs to another organization. */
export async function findWorkflow(deps: Ports, requestContext: RequestContext, id: string): Promise<WorkflowRecord | null> {
  return getWorkflow(deps, requireScope(requestContext.caller, 'agents'), id).catch((error) => {
    if (error instanceof NotFound) return null
    throw error
  })
}

export async function listWorkflows(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  page: OrderedPage,
  budget: ReadBudget,
): Promise<Connection<WorkflowRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  return listById(collections.workflows, { organizationId, listed: true }, page, WORKFLOW_ID, budget)
}

/** Returns the definition of the workflow in this version, or null when it is deleted. */
export async function findWorkflowVersion(
  { collections }: Ports,
  organizationId: string,
  workflowId: string,
  version: number,
): Promise<WorkflowDefinition | null> {
  const stored = await collections.workflowVersions.findOne({ _id: `${workflowId}_${version}`, organizationId })
  return stored && (JSON.parse(stored.definition) as WorkflowDefinition)
}

/** Lists the tasks of a definition, including those inside maps, each with its path. */
export function listTasks({ nodes }: WorkflowDefinition): readonly { readonly task: Task; readonly path: string }[] {
  return nodes.flatMap((node, i): { task: Task; path: string }[] => {
    if (node.type === 'branch') return []
    return node.type === 'map' ? [{ task: node.node, path: `nodes[${i}].node` }] : [{ task: node, path: `nodes[${i}]` }]
  })
}

/**
 * Checks that the caller may use the model and that it is of this kind.
 * @throws {KisError} `model_not_found` or `residency_policy_violation`, with `param` as the path.
 */
export function checkModel(deps: Ports, caller: Principal, kind: ModelKind, modelId: string, param: string): void {
  const check = () => ({ model: modelId })
  admit(deps.catalog, { ...caller, scopes: [...caller.scopes, 'inference'] }, { scope: 'inference', kind, modelParam: param, check })
}

async function checkReferences(
  deps: Ports,
  requestContext: RequestContext & { readonly caller: Principal },
  definition: WorkflowDefinition,
): Promise<void> {
  await checkSchemas(deps, requestContext.caller, listSchemas(definition, 'input.definition'), requestContext.signal)
  const tasks = listTasks(definition).map(({ task, path }) => ({ task, path: `input.definition.${path}` }))
  // The knowledge subgraph checks the collections. A file is named only when the workflow runs with the scope `agents`,
  // so the scope to read files is checked here.
  if (tasks.some(({ task }) => task.type === 'transcribe')) requireScope(requestContext.caller, 'knowledge:read')
  const collectionIds = [...new Set(tasks.flatMap(({ task }) => (task.type === 'search' ? [task.collection_id] : [])))]
  const found = new Set((await deps.knowledge.describe(collectionIds, requestContext)).map(({ id }) => id))
  for (const { task, path } of tasks) {
    if (task.type === 'chat') checkModel(deps, requestContext.caller, 'chat', task.model, `${path}.model`)
    if (task.type === 'transcribe') checkModel(deps, requestContext.caller, 'transcription', task.model, `${path}.model`)
    if (task.type === 'agent') await getAgent(deps, requestContext.caller, task.agent_id, `${path}.agent_id`)
    if (task.type === 'search' && !found.has(task.collection_id))
      throw new NotFound('collection', task.collection_id, `${path}.collection_id`)
  }
}

function readName(value: unknown): string {
  const name = textAt(value, 'input.name').trim()
  if (name === '') refuse('invalid_request', 'input.name', 'A name must not be empty.')
  checkLength(name, 'input.name', MAX_NAME)
  checkPlain(name, 'input.name')
  return name
}

function duplicateCode(error: unknown, code: string): unknown {
  if (!(error instanceof DuplicateKey)) return error
  const message = `A workflow with code \`${code}\` exists in this organization.`
  return new KisError('already_exists', message, { param: 'input.code', cause: error })
}
