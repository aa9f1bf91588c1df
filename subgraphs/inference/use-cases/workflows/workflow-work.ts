import { NotFound } from '../../../common/errors.ts'
import type { WorkflowError, WorkflowEvent } from '../../domain/workflows/run.ts'
import type { KeyedDeps } from '../deps.ts'
import { describeWorkflowEnd } from '../runs/run-ends.ts'
import type { ActiveRun, AtEnd, EndFields, RunEnd, RunWork } from '../runs/run-kind.ts'
import type { WorkflowRunRecord } from '../tables.ts'
import type { PinnedAgent } from './node-task.ts'
import { countMarksBefore, WorkflowRun } from './workflow-run.ts'
import { findWorkflowVersion } from './workflows.ts'

/** The work on one run of a workflow in one process. */
export class WorkflowWork implements RunWork<WorkflowEvent> {
  readonly #deps: KeyedDeps
  readonly #record: WorkflowRunRecord

  constructor(deps: KeyedDeps, record: WorkflowRunRecord) {
    this.#deps = deps
    this.#record = record
  }

  async work({ context, steps, ...activeRun }: ActiveRun<WorkflowEvent>): Promise<RunEnd> {
    const deps = this.#deps
    const { organizationId, workflowId, workflowVersion, agents } = this.#record
    const definition = await findWorkflowVersion(deps, organizationId, workflowId, workflowVersion)
    if (!definition) throw new NotFound('workflow', workflowId)
    context.signal.throwIfAborted()
    const tasks = {
      deps,
      context,
      steps,
      agents: JSON.parse(agents) as Readonly<Record<string, PinnedAgent>>,
      marksBefore: countMarksBefore(definition),
    }
    return new WorkflowRun({ record: this.#record, definition, tasks, activeRun }).run()
  }

  /** Marks nodes that have not ended: they fail with the run, or are skipped. */
  async atEnd(end: EndFields, output: unknown, charges: ReadonlyMap<string, bigint>): Promise<AtEnd> {
    const current = await this.#deps.collections.workflowRuns.findOne({ _id: this.#record._id })
    const { endedAt } = end
    const error: WorkflowError | null = end.error && { nodeId: null, ...end.error }
    const nodes = Object.entries(current?.nodes ?? this.#record.nodes).map(([id, node]) => {
      const cost = String(charges.get(id) ?? 0n)
      if (node.state === 'running')
        return [
          `nodes.${id}`,
          { ...node, state: error ? 'failed' : 'skipped', error: error && { code: error.code, message: error.message }, cost, endedAt },
        ]
      return [`nodes.${id}`, { ...node, ...(node.state === 'pending' && { state: 'skipped' }), cost }]
    })
    return {
      fields: { ...Object.fromEntries(nodes), error, output: end.status === 'completed' ? JSON.stringify(output) : null },
      event: describeWorkflowEnd(this.#record, end),
    }
  }
}
