import { NotFound } from '../../common/errors.ts'
import { type Principal, requireScope } from '../../common/identity/principal.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { WorkflowRecord } from '../use-cases/tables.ts'
import { createWorkflow, deleteWorkflow, getWorkflow, updateWorkflow } from '../use-cases/workflows/workflows.ts'
import type { MutationResolvers, QueryResolvers, WorkflowResolvers } from './generated.ts'
import { longRecordsById } from './long-records-by-id.ts'

export const workflowQueries: QueryResolvers = {
  workflow: (_parent, { id }, { deps, caller }) => findWorkflow(deps, requireScope(caller, 'agents'), id),
  workflows(_parent, args, { deps, caller, budget }) {
    const { organizationId } = requireScope(caller, 'agents')
    return longRecordsById(deps.collections.workflows, { organizationId, listed: true }, args, /^wfl_/, budget)
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
  definition: ({ definition }, _args, { budget }) => JSON.parse(budget.taken(definition)),
  runs: ({ _id, organizationId }, args, { deps, budget }) =>
    longRecordsById(deps.collections.workflowRuns, { organizationId, workflowId: _id }, args, /^wfr_/, budget),
  __resolveReference: ({ id }, { deps, caller }) => findWorkflow(deps, requireScope(caller, 'agents'), id),
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
