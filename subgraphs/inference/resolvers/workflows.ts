import { findKeptVersion, listVersions } from '../use-cases/versions.ts'
import { listWorkflowRuns } from '../use-cases/workflows/read-runs.ts'
import { createWorkflow, deleteWorkflow, findWorkflow, listWorkflows, updateWorkflow } from '../use-cases/workflows/workflows.ts'
import type { MutationResolvers, QueryResolvers, WorkflowResolvers, WorkflowVersionResolvers } from './generated.ts'

export const workflowQueries: QueryResolvers = {
  workflow: (_parent, { id }, { deps, ...ask }) => findWorkflow(deps, ask, id),
  workflows: (_parent, args, { deps, budget, ...ask }) => listWorkflows(deps, ask, args, budget),
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

export const WorkflowVersionFields: WorkflowVersionResolvers = {
  definition: ({ definition }, _args, { budget }) => JSON.parse(budget.taken(definition)),
}

export const WorkflowFields: WorkflowResolvers = {
  id: ({ _id }) => _id,
  definition: ({ definition }, _args, { budget }) => JSON.parse(budget.taken(definition)),
  versions: (workflow, args, { deps, budget }) => listVersions(deps.collections.workflowVersions, workflow, args, budget),
  atVersion: (workflow, { version }, { deps }) => findKeptVersion(deps.collections.workflowVersions, workflow, version),
  runs: (workflow, args, { deps, budget }) => listWorkflowRuns(deps, workflow, args, budget),
  __resolveReference: ({ id }, { deps, ...ask }) => findWorkflow(deps, ask, id),
}
