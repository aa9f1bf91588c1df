import type { AnswerBudget } from '../../../common/documents/answer-budget.ts'
import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
import { listSifted } from '../../../common/documents/list-sifted.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { RunStatus } from '../../domain/agents/run.ts'
import type { AskContext, Ports } from '../deps.ts'
import type { AgentRecord, RunRecord } from '../tables.ts'

const RUN_ID = /^run_/

export interface RunFilter {
  readonly status?: RunStatus | null
  readonly since?: Date | null
  readonly until?: Date | null
}

/** Returns a run of the caller's organization, or null when there is none. */
export async function findRun({ collections }: Pick<Ports, 'collections'>, { caller }: AskContext, id: string): Promise<RunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return collections.runs.findOne({ _id: id, organizationId })
}

/** Lists the runs of an agent. It checks no permission: the caller must have been allowed to read the agent. */
export async function listRuns(
  { collections }: Pick<Ports, 'collections'>,
  { _id, organizationId }: Pick<AgentRecord, '_id' | 'organizationId'>,
  page: OrderedPage,
  budget: AnswerBudget,
): Promise<Connection<RunRecord>> {
  return listById(collections.runs, { organizationId, agentId: _id }, page, RUN_ID, budget)
}

/** Lists the runs of all agents of the caller's organization, also of those that were deleted. */
export async function listAllRuns(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: AskContext,
  { filter, ...page }: OrderedPage & { readonly filter?: RunFilter | null },
  budget: AnswerBudget,
): Promise<Connection<RunRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  const { status, since, until } = filter ?? {}
  const sieve = { filter: { organizationId, ...(status && { status }) }, idPrefix: 'run', since, until, matches: null, sortBy: null }
  return listSifted(collections.runs, sieve, page, budget)
}
