import { type ArchiveTakers, requireOwn, storedTaker, taker } from '../../../common/portable/organization-archive.ts'
import { readDefinition } from '../../domain/agents/definition.ts'
import type { Collections } from '../tables.ts'
import { resealHeaders, type Sealing } from './headers.ts'
import { AGENT, AGENT_VERSION, RETAINED_RUNS, RUN, RUN_EVENT, THREAD, WORKFLOW, WORKFLOW_RUN, WORKFLOW_VERSION } from './kinds.ts'

interface AgentImport {
  readonly collections: Collections
  readonly organizationId: string
  /** Opens the headers of MCP servers in the archive, and seals them here. Null: the archive has none. */
  readonly sealing: { readonly archive: Sealing; readonly own: Sealing } | null
  /** Called with the model of each agent. */
  readonly onModel: (modelId: string) => void
}

export function agentTakers({ collections, organizationId, sealing, onModel }: AgentImport): ArchiveTakers {
  const resealing = sealing && { from: sealing.archive, to: sealing.own }
  const sealed = (definition: string) => ({ definition: resealHeaders(definition, resealing, () => undefined) })
  const { agents, agentVersions, workflows, workflowVersions, threads, runs, workflowRuns, runEvents, retainedRuns } = collections
  const noted = (definition: string) => {
    onModel(readDefinition(definition).modelId)
    return sealed(definition)
  }
  const ofRun = ({ keptAt }: { readonly keptAt?: number }) => ({ outbox: [], ...(keptAt !== undefined && { keptOf: organizationId }) })
  const ofAgents = (versions: readonly { readonly _id: string }[]) => requireOwn([agents], versions.map(toOwner), organizationId)
  const ofWorkflows = (versions: readonly { readonly _id: string }[]) => requireOwn([workflows], versions.map(toOwner), organizationId)
  const ofRuns = (events: readonly { readonly _id: string; readonly runId: string; readonly sequence: number }[]) => {
    const misnamed = events.find(({ _id, runId, sequence }) => _id !== `${runId}_${sequence}`)
    if (misnamed) throw new Error(`The archive is corrupted: the event ${misnamed._id} is not that of its run.`)
    return requireOwn(
      [runs, workflowRuns],
      events.map(({ runId }) => runId),
      organizationId,
    )
  }
  return {
    files: [],
    records: [
      storedTaker(AGENT, agents, organizationId, ({ definition, ...agent }) => ({
        ...agent,
        ...noted(definition),
        listed: true,
      })),
      storedTaker(
        AGENT_VERSION,
        agentVersions,
        organizationId,
        ({ definition, ...version }) => ({ ...version, ...sealed(definition) }),
        ofAgents,
      ),
      storedTaker(WORKFLOW, workflows, organizationId, (workflow) => ({ ...workflow, listed: true })),
      storedTaker(WORKFLOW_VERSION, workflowVersions, organizationId, (version) => version, ofWorkflows),
      storedTaker(THREAD, threads, organizationId, (thread) => thread),
      storedTaker(RUN, runs, organizationId, (run) => ({ ...run, ...ofRun(run) })),
      storedTaker(WORKFLOW_RUN, workflowRuns, organizationId, (run) => ({ ...run, ...ofRun(run) })),
      storedTaker(RUN_EVENT, runEvents, organizationId, (event) => event, ofRuns),
      taker(RETAINED_RUNS, {
        async write(totals) {
          await retainedRuns.insertMissing(totals.map(({ noun, characters }) => ({ _id: `${organizationId}_${noun}`, characters })))
        },
      }),
    ],
  }
}

/** Returns the id of the agent or workflow of a version. */
function toOwner({ _id }: { readonly _id: string }): string {
  return _id.slice(0, _id.lastIndexOf('_'))
}
