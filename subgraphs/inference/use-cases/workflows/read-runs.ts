import type { AnswerBudget } from '../../../common/documents/answer-budget.ts'
import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { AskContext, Ports } from '../deps.ts'
import type { WorkflowRecord, WorkflowRunRecord } from '../tables.ts'

const RUN_ID = /^wfr_/

/** Returns a run of the caller's organization, or null when there is none. */
export async function findWorkflowRun(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: AskContext,
  id: string,
): Promise<WorkflowRunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return collections.workflowRuns.findOne({ _id: id, organizationId })
}

/** Lists the runs of a workflow. It checks no permission: the caller must have been allowed to read the workflow. */
export async function listWorkflowRuns(
  { collections }: Pick<Ports, 'collections'>,
  { _id, organizationId }: Pick<WorkflowRecord, '_id' | 'organizationId'>,
  page: OrderedPage,
  budget: AnswerBudget,
): Promise<Connection<WorkflowRunRecord>> {
  return listById(collections.workflowRuns, { organizationId, workflowId: _id }, page, RUN_ID, budget)
}
