import type { ErasedStep, ErasureTask, Found } from '../../common/erasure/erasing.ts'
import type { ServedDeps } from './deps.ts'
import { eraseConversations, findConversations } from './erase-conversations.ts'
import { eraseOrganization } from './erase-organization.ts'

/** Counts stop here: see the contract's `ErasedRecords`. */
const MAX_COUNTED = 1_000_000

/** Counts the records of inference that an erasure covers. */
export async function findErased(deps: ServedDeps, task: ErasureTask): Promise<Found> {
  if (task.kind !== 'organization') return findConversations(deps, task)
  const { agents, workflows, runs, workflowRuns, threads, keyedCalls } = deps.collections
  const { organizationId } = task
  const limit = { limit: MAX_COUNTED }
  return {
    found: {
      agents: await agents.countDocuments({ organizationId, listed: true }, limit),
      workflows: await workflows.countDocuments({ organizationId, listed: true }, limit),
      agent_runs: await runs.countDocuments({ organizationId }, limit),
      workflow_runs: await workflowRuns.countDocuments({ organizationId }, limit),
      threads: await threads.countDocuments({ organizationId }, limit),
      kept_answers: await keyedCalls.countDocuments({ organizationId }, limit),
    },
  }
}

/** Erases as many of these records as one call can. Can be repeated. */
export async function eraseFound(deps: ServedDeps, task: ErasureTask, signal: AbortSignal): Promise<ErasedStep> {
  if (task.kind !== 'organization') return eraseConversations(deps, task, signal)
  return { isEmpty: await eraseOrganization(deps, task.organizationId) }
}
