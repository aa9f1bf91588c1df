import type { Ports } from './deps.ts'
import type { AgentRecord, Collections, WorkflowRecord } from './tables.ts'

/** How long a deleted workflow waits until the service checks again whether its runs have ended. */
const LATER_MS = 60_000
const MAX_SWEPT = 100
/** Most ids of one query, a limit of the store. */
const MAX_IDS = 1_000

type PurgeDeps = Pick<Ports, 'collections' | 'clock'>

/** Deletes a deleted agent's record and all its versions from the store. Can be repeated. */
export async function purgeAgent({ collections }: PurgeDeps, agent: AgentRecord): Promise<void> {
  await purgeVersions(collections.agentVersions, agent)
  await collections.agents.findOneAndDelete({ _id: agent._id, listed: false })
}

/** Does the same for a workflow, after its runs in progress have ended: they need its versions. */
export async function purgeWorkflow({ collections, clock }: PurgeDeps, workflow: WorkflowRecord): Promise<void> {
  const { _id } = workflow
  if ((await collections.workflowRuns.countDocuments({ 'job.workflowId': _id })) > 0) {
    const forgetAt = new Date(clock.now().getTime() + LATER_MS)
    await collections.workflows.findOneAndUpdate({ _id, listed: false }, { $set: { forgetAt } })
    return
  }
  await purgeVersions(collections.workflowVersions, workflow)
  await collections.workflows.findOneAndDelete({ _id, listed: false })
}

/** Deletes agents whose deletion waits or was cut by a crash, at most 100 per call. */
export async function purgeDeletedAgents(deps: PurgeDeps): Promise<void> {
  for (const agent of await deps.collections.agents.find(...dueIn(deps))) await purgeAgent(deps, agent)
}

export async function purgeDeletedWorkflows(deps: PurgeDeps): Promise<void> {
  for (const workflow of await deps.collections.workflows.find(...dueIn(deps))) await purgeWorkflow(deps, workflow)
}

function dueIn({ clock }: PurgeDeps) {
  return [{ forgetAt: { $lte: clock.now() } }, { sort: { forgetAt: 1 }, limit: MAX_SWEPT }] as const
}

/** Deletes all versions, and the next one, which a change that the deletion overtook may have written. */
async function purgeVersions(
  versions: Collections['agentVersions'],
  { _id, version }: Pick<AgentRecord, '_id' | 'version'>,
): Promise<void> {
  for (let first = 1; first <= version + 1; first += MAX_IDS) {
    const count = Math.min(MAX_IDS, version + 2 - first)
    await versions.deleteMany({ _id: { $in: Array.from({ length: count }, (_, i) => `${_id}_${first + i}`) } })
  }
}
