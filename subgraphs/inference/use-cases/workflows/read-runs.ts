import { listSifted } from '../../../common/documents/lists.ts'
import type { ReadBudget } from '../../../common/documents/long-records.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import { type RunPage, sifted } from '../agents/read-runs.ts'
import type { Ports, RequestContext } from '../deps.ts'
import type { WorkflowRecord, WorkflowRunRecord } from '../tables.ts'

/** Returns a run of the caller's organization, or null when there is none. */
export async function findWorkflowRun(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  id: string,
): Promise<WorkflowRunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return collections.workflowRuns.findOne({ _id: id, organizationId })
}

/** Lists the runs of a workflow. It checks no permission: the caller must have been allowed to read the workflow. */
export async function listWorkflowRuns(
  { collections }: Pick<Ports, 'collections'>,
  { _id, organizationId }: Pick<WorkflowRecord, '_id' | 'organizationId'>,
  page: RunPage,
  budget: ReadBudget,
): Promise<Connection<WorkflowRunRecord>> {
  return listSifted(collections.workflowRuns, ...sifted('wfr', { organizationId, workflowId: _id }, page), budget)
}

/** Lists the runs of all workflows of the caller's organization, also of those that were deleted. */
export async function listAllWorkflowRuns(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  page: RunPage,
  budget: ReadBudget,
): Promise<Connection<WorkflowRunRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  return listSifted(collections.workflowRuns, ...sifted('wfr', { organizationId }, page), budget)
}
