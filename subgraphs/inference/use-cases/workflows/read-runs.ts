import type { AnswerBudget } from '../../../common/documents/answer-budget.ts'
import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
import { listSifted } from '../../../common/documents/list-sifted.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { RunFilter } from '../agents/read-runs.ts'
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

/** Lists the runs of all workflows of the caller's organization, also of those that were deleted. */
export async function listAllWorkflowRuns(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: AskContext,
  { filter, ...page }: OrderedPage & { readonly filter?: RunFilter | null },
  budget: AnswerBudget,
): Promise<Connection<WorkflowRunRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  const { status, since, until } = filter ?? {}
  const sieve = { filter: { organizationId, ...(status && { status }) }, idPrefix: 'wfr', since, until, matches: null, sortBy: null }
  return listSifted(collections.workflowRuns, sieve, page, budget)
}
