import { OwnedReads } from '../../common/documents/batched-reads.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { Ports, RequestContext } from './deps.ts'
import type { AgentRecord, WorkflowRecord } from './tables.ts'

/** The agents and workflows that the runs of one operation are of. Those of a list of runs are read at once. */
export class DefinitionReads {
  readonly #agents: OwnedReads<AgentRecord>
  readonly #workflows: OwnedReads<WorkflowRecord>

  constructor({ agents, workflows }: Pick<Ports['collections'], 'agents' | 'workflows'>) {
    this.#agents = new OwnedReads(agents)
    this.#workflows = new OwnedReads(workflows)
  }

  /** Null if it is deleted. */
  findAgent({ caller }: Pick<RequestContext, 'caller'>, id: string): Promise<AgentRecord | null> {
    return this.#agents.find(requireScope(caller, 'agents').organizationId, id)
  }

  /** Null if it is deleted. */
  findWorkflow({ caller }: Pick<RequestContext, 'caller'>, id: string): Promise<WorkflowRecord | null> {
    return this.#workflows.find(requireScope(caller, 'agents').organizationId, id)
  }
}
