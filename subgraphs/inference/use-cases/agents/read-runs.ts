import { listSifted, type OrderedPage, type Sieve } from '../../../common/documents/lists.ts'
import type { ReadBudget } from '../../../common/documents/long-records.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { Filter, StoredDocument } from '../../../common/ports/document-store.ts'
import type { RunStatus } from '../../domain/agents/run.ts'
import type { Ports, RequestContext } from '../deps.ts'
import type { AgentRecord, RunRecord } from '../tables.ts'

interface RunFilter {
  readonly status?: RunStatus | null
  readonly since?: Date | null
  readonly until?: Date | null
}

export type RunPage = OrderedPage & { readonly filter?: RunFilter | null }

/** What `listSifted` lists of runs. */
export function sifted(idPrefix: string, owned: Filter, { filter, ...page }: RunPage): [Sieve<StoredDocument>, OrderedPage] {
  const { status, since, until } = filter ?? {}
  return [{ filter: { ...owned, ...(status && { status }) }, idPrefix, since, until, matches: null, sortBy: null }, page]
}

/** Returns a run of the caller's organization, or null when there is none. */
export async function findRun(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  id: string,
): Promise<RunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return collections.runs.findOne({ _id: id, organizationId })
}

/** Lists the runs of an agent. It checks no permission: the caller must have been allowed to read the agent. */
export async function listRuns(
  { collections }: Pick<Ports, 'collections'>,
  { _id, organizationId }: Pick<AgentRecord, '_id' | 'organizationId'>,
  page: RunPage,
  budget: ReadBudget,
): Promise<Connection<RunRecord>> {
  return listSifted(collections.runs, ...sifted('run', { organizationId, agentId: _id }, page), budget)
}

/** Lists the runs of all agents of the caller's organization, also of those that were deleted. */
export async function listAllRuns(
  { collections }: Pick<Ports, 'collections'>,
  { caller }: RequestContext,
  page: RunPage,
  budget: ReadBudget,
): Promise<Connection<RunRecord>> {
  const { organizationId } = requireScope(caller, 'agents')
  return listSifted(collections.runs, ...sifted('run', { organizationId }, page), budget)
}
