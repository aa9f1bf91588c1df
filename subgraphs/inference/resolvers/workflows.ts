import { findStoredVersion, listVersions } from '../use-cases/versions.ts'
import { listWorkflowRuns } from '../use-cases/workflows/read-runs.ts'
import { createWorkflow, deleteWorkflow, findWorkflow, listWorkflows, updateWorkflow } from '../use-cases/workflows/workflows.ts'
import type { MutationResolvers, QueryResolvers, WorkflowResolvers, WorkflowVersionResolvers } from './generated.ts'

export const workflowQueries: QueryResolvers = {
  workflow: (_parent, { id }, { deps, ...requestContext }) => findWorkflow(deps, requestContext, id),
  workflows: (_parent, args, { deps, budget, ...requestContext }) => listWorkflows(deps, requestContext, args, budget),
}

export const workflowMutations: MutationResolvers = {
  async createWorkflow(_parent, { input }, { deps, ...requestContext }) {
    return { workflow: await createWorkflow(deps, requestContext, input) }
  },
  async updateWorkflow(_parent, { input }, { deps, ...requestContext }) {
    return { workflow: await updateWorkflow(deps, requestContext, input) }
  },
  async deleteWorkflow(_parent, { id }, { deps, ...requestContext }) {
    await deleteWorkflow(deps, requestContext, id)
    return { id }
  },
}

export const WorkflowVersionFields: WorkflowVersionResolvers = {
  definition: ({ definition }, _args, { budget }) => JSON.parse(budget.charged(definition)),
}

export const WorkflowFields: WorkflowResolvers = {
  id: ({ _id }) => _id,
  definition: ({ definition }, _args, { budget }) => JSON.parse(budget.charged(definition)),
  versions: (workflow, args, { deps, budget }) => listVersions(deps.collections.workflowVersions, workflow, args, budget),
  atVersion: (workflow, { version }, { deps }) => findStoredVersion(deps.collections.workflowVersions, workflow, version),
  runs: (workflow, args, { deps, budget }) => listWorkflowRuns(deps, workflow, args, budget),
  __resolveReference: ({ id }, { deps, ...requestContext }) => findWorkflow(deps, requestContext, id),
}
