import { type ArchiveSink, listAll } from '../../../common/portable/organization-archive.ts'
import type { DocumentCollection } from '../../../common/ports/document-store.ts'
import type { AgentVersion, Collections, RunBase } from '../tables.ts'
import { resealHeaders, type Sealing } from './headers.ts'
import { AGENT, AGENT_VERSION, RETAINED_RUNS, RUN, RUN_EVENT, THREAD, WORKFLOW, WORKFLOW_RUN, WORKFLOW_VERSION } from './kinds.ts'

/** Records of one read. Conversations and runs may have megabytes. */
const FEW = 10
/** More than are stored. */
const MAX_VERSIONS = 200
const EVENTS = 200

interface AgentExport {
  readonly collections: Collections
  readonly organizationId: string
  /** Opens the headers of MCP servers, and seals them for the archive. Null: headers are not exported. */
  readonly sealing: { readonly own: Sealing; readonly archive: Sealing } | null
}

/** Writes agents and workflows with their versions, threads, and the runs that have ended with their events. */
export async function exportAgents({ collections, organizationId, sealing }: AgentExport, sink: ArchiveSink): Promise<void> {
  const listed = { organizationId, listed: true }
  const resealing = sealing && { from: sealing.own, to: sealing.archive, omitsUnopened: true }
  const sealed = (definition: string) => resealHeaders(definition, resealing, () => sink.skip('headers of MCP servers'))
  for await (const agent of listAll(collections.agents, listed)) {
    await sink.record(AGENT, { ...agent, definition: sealed(agent.definition) })
    for await (const version of listVersions(collections.agentVersions, agent))
      await sink.record(AGENT_VERSION, { ...version, definition: sealed(version.definition) })
  }
  for await (const workflow of listAll(collections.workflows, listed)) {
    await sink.record(WORKFLOW, workflow)
    for await (const version of listVersions(collections.workflowVersions, workflow)) await sink.record(WORKFLOW_VERSION, version)
  }
  for await (const thread of listAll(collections.threads, { organizationId }, FEW)) await sink.record(THREAD, thread)
  // An import needs a run before its events, and an archive has all records of a kind together: events come last.
  const ended: string[] = []
  for await (const run of listAll(collections.runs, { organizationId }, FEW)) {
    if (!hasEnded(run, sink)) continue
    await sink.record(RUN, portable(run))
    ended.push(run._id)
  }
  for await (const run of listAll(collections.workflowRuns, { organizationId }, FEW)) {
    if (!hasEnded(run, sink)) continue
    await sink.record(WORKFLOW_RUN, portable(run))
    ended.push(run._id)
  }
  for (const runId of ended) await exportEvents(collections, runId, sink)
  for (const noun of ['agent', 'workflow']) {
    const total = await collections.retainedRuns.findOne({ _id: `${organizationId}_${noun}` })
    if (total) await sink.record(RETAINED_RUNS, { noun, characters: total.characters })
  }
}

/**
 * Removes the operator scope, which belongs to the installation and which no import accepts. Runs of the operator's own
 * key have it.
 */
function portable<Run extends RunBase>(run: Run): Run {
  return run.scopes ? { ...run, scopes: run.scopes.filter((scope) => scope !== 'operator') } : run
}

function hasEnded({ status, endedAt, job }: RunBase, sink: ArchiveSink): boolean {
  const isOver = status !== 'running' && endedAt !== null && !job
  if (!isOver) sink.skip('runs in progress')
  return isOver
}

/** Yields the stored versions, oldest first. */
async function* listVersions(
  versions: DocumentCollection<AgentVersion>,
  { _id, version }: { readonly _id: string; readonly version: number },
): AsyncGenerator<AgentVersion> {
  const first = Math.max(1, version + 1 - MAX_VERSIONS)
  for (let number = first; number <= version; number++) {
    const found = await versions.findOne({ _id: `${_id}_${number}` })
    if (found) yield found
  }
}

async function exportEvents({ runEvents }: Collections, runId: string, sink: ArchiveSink): Promise<void> {
  for (let after = 0; ; ) {
    const events = await runEvents.find({ runId, sequence: { $gt: after } }, { sort: { sequence: 1 }, limit: EVENTS })
    for (const event of events) await sink.record(RUN_EVENT, event)
    if (events.length < EVENTS) return
    after = events.at(-1)!.sequence
  }
}
