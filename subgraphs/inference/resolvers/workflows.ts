import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import { connectionOf, pageOf } from '../../common/link/connection.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { WorkflowRecord } from '../use-cases/tables.ts'
import { createWorkflow, deleteWorkflow, getWorkflow, updateWorkflow } from '../use-cases/workflows/workflows.ts'
import { idRange } from './agents.ts'
import type { MutationResolvers, QueryResolvers, WorkflowResolvers } from './generated.ts'

export const workflowQueries: QueryResolvers = {
  workflow: (_parent, { id }, { deps, caller }) => findWorkflow(deps, requireScope(caller, 'agents'), id),
  async workflows(_parent, args, { deps, caller }) {
    const { organizationId } = requireScope(caller, 'agents')
    const page = pageOf(args, /^wfl_/)
    const { filter, sort } = idRange(args, page.after)
    const workflows = await deps.collections.workflows.find({ organizationId, listed: true, ...filter }, { sort, limit: page.limit })
    return connectionOf(workflows, page, ({ _id }) => _id)
  },
}

export const workflowMutations: MutationResolvers = {
  async createWorkflow(_parent, { input }, { deps, ...ask }) {
    return { workflow: await createWorkflow(deps, ask, input) }
  },
  async updateWorkflow(_parent, { input }, { deps, ...ask }) {
    return { workflow: await updateWorkflow(deps, ask, input) }
  },
  async deleteWorkflow(_parent, { id }, { deps, ...ask }) {
    await deleteWorkflow(deps, ask, id)
    return { id }
  },
}

export const WorkflowFields: WorkflowResolvers = {
  id: ({ _id }) => _id,
  definition: ({ definition }) => JSON.parse(definition),
  async runs({ _id, organizationId }, args, { deps }) {
    const page = pageOf(args, /^wfr_/)
    const { filter, sort } = idRange(args, page.after)
    const runs = await deps.collections.workflowRuns.find({ organizationId, workflowId: _id, ...filter }, { sort, limit: page.limit })
    return connectionOf(runs, page, (run) => run._id)
  },
  __resolveReference: ({ id }, { deps, caller }) => findWorkflow(deps, requireScope(caller, 'agents'), id),
}

/** Null: it does not exist, is deleted, or belongs to another organization. */
export async function findWorkflow(deps: ServedDeps, principal: Principal, id: string): Promise<WorkflowRecord | null> {
  try {
    return await getWorkflow(deps, principal, id)
  } catch (error) {
    if (error instanceof NotFound) return null
    throw error
  }
}
