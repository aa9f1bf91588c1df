import { eraseEvents } from '../../common/events/event-log.ts'
import type { DocumentCollection } from '../../common/ports/document-store.ts'
import type { ServedDeps } from './deps.ts'
import { purgeAgent, purgeWorkflow } from './purge.ts'
import type { AgentRecord, Collections, WorkflowRecord } from './tables.ts'

const PAGE = 100

/**
 * Erases what the subgraph has of a deleted organization: runs, agents, workflows, threads and kept answers. Runs in
 * progress are cancelled first. True if nothing was left. Can be repeated; each call goes as far as it can.
 */
export async function eraseOrganization(deps: ServedDeps, organizationId: string): Promise<boolean> {
  const { collections, runs, workflowRuns } = deps
  const results = [
    await runs.erase(organizationId),
    await workflowRuns.erase(organizationId),
    await eraseOwned(deps, collections.agents, organizationId, (agent) => purgeAgent(deps, agent)),
    await eraseOwned(deps, collections.workflows, organizationId, (workflow) => purgeWorkflow(deps, workflow)),
    await eraseAll(collections.threads, organizationId),
    await eraseAll(collections.keyedCalls, organizationId),
    await eraseRetainedRuns(collections, organizationId),
    await eraseEvents(collections, organizationId),
  ]
  return results.every((isEmpty) => isEmpty)
}

/** Hides and forgets agents or workflows. A workflow stays until its runs have ended. */
async function eraseOwned<Record extends AgentRecord | WorkflowRecord>(
  { clock }: Pick<ServedDeps, 'clock'>,
  records: DocumentCollection<Record>,
  organizationId: string,
  purge: (record: Record) => Promise<void>,
): Promise<boolean> {
  for (;;) {
    const listed = await records.find({ organizationId, listed: true }, { limit: PAGE })
    for (const { _id } of listed)
      await records.findOneAndUpdate({ _id, listed: true }, { $set: { listed: false, code: _id, forgetAt: clock.now() } })
    if (listed.length < PAGE) break
  }
  for (let after = '', isEmpty = true; ; isEmpty = false) {
    const hidden = await records.find({ organizationId, listed: false, _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
    if (hidden.length === 0) return isEmpty
    for (const record of hidden) await purge(record)
    after = hidden.at(-1)!._id
  }
}

async function eraseAll(records: Collections['threads' | 'keyedCalls'], organizationId: string): Promise<boolean> {
  for (let isEmpty = true; ; isEmpty = false) if ((await records.deleteMany({ organizationId })) === 0) return isEmpty
}

async function eraseRetainedRuns({ retainedRuns }: Collections, organizationId: string): Promise<boolean> {
  const found = await Promise.all(['agent', 'workflow'].map((noun) => retainedRuns.findOneAndDelete({ _id: `${organizationId}_${noun}` })))
  return found.every((record) => record === null)
}
