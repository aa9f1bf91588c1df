import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, pageOf } from '../../common/link/connection.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { WorkflowRecord } from '../use-cases/tables.ts'
import { createWorkflow, deleteWorkflow, getWorkflow, updateWorkflow, type WorkflowInput } from '../use-cases/workflows/workflows.ts'
import { idRange, type ListArguments } from './agents.ts'

type Context = ResolverContext<ServedDeps>

export const workflowQueries = {
  workflow: (_parent: unknown, { id }: { id: string }, { deps, caller }: Context) => findWorkflow(deps, requireScope(caller, 'agents'), id),
  async workflows(_parent: unknown, args: ListArguments, { deps, caller }: Context) {
    const { organizationId } = requireScope(caller, 'agents')
    const page = pageOf(args, /^wfl_/)
    const { filter, sort } = idRange(args, page.after)
    const workflows = await deps.collections.workflows.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit })
    return connectionOf(workflows, page, ({ _id }) => _id)
  },
}

export const workflowMutations = {
  async createWorkflow(_parent: unknown, { input }: { input: WorkflowInput }, { deps, ...ask }: Context) {
    return { workflow: await createWorkflow(deps, ask, input) }
  },
  async updateWorkflow(_parent: unknown, { input }: { input: WorkflowInput & { readonly id: string } }, { deps, ...ask }: Context) {
    return { workflow: await updateWorkflow(deps, ask, input) }
  },
  async deleteWorkflow(_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) {
    await deleteWorkflow(deps, ask, id)
    return { id }
  },
}

export const WorkflowFields = {
  id: ({ _id }: WorkflowRecord) => _id,
  definition: ({ definition }: WorkflowRecord) => JSON.parse(definition),
  async runs({ _id, organizationId }: WorkflowRecord, args: ListArguments, { deps }: Context) {
    const page = pageOf(args, /^wfr_/)
    const { filter, sort } = idRange(args, page.after)
    const runs = await deps.collections.workflowRuns.find({ organizationId, workflowId: _id, ...filter }, { sort, limit: page.limit })
    return connectionOf(runs, page, (run) => run._id)
  },
  __resolveReference: ({ id }: { id: string }, { deps, caller }: Context) => findWorkflow(deps, requireScope(caller, 'agents'), id),
}

/** Null when it is absent, deleted or another organization's. */
export async function findWorkflow(deps: ServedDeps, principal: Principal, id: string): Promise<WorkflowRecord | null> {
  try {
    return await getWorkflow(deps, principal, id)
  } catch (error) {
    if (error instanceof NotFound) return null
    throw error
  }
}
