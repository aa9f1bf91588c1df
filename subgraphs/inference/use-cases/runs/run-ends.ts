import type { EventType } from '../../../../schema/events.ts'
import { type EventData, EventLog, type EventRecord, type Telling } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import type { Log } from '../../../common/process/log.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { RunStatus } from '../../domain/agents/run.ts'
import type { Collections, RunRecord, WorkflowRunRecord } from '../tables.ts'

/** The events of runs that end, of an organization's agents and workflows, in one order. */
export type RunEnds = EventLog<Telling>

/** Opens the log of the ends of runs, of agents and of workflows. */
export function openRunEnds(collections: Collections, log: Log): RunEnds {
  const { runs, workflowRuns } = collections
  return new EventLog<Telling>([runs, workflowRuns], collections, log)
}

interface End {
  readonly status: RunStatus
  readonly cost: string | null
  readonly error: { readonly code: string } | null
}

/** Returns the data of the event about the end of an agent's run. */
export function describeAgentEnd({ agentId, agentVersion, threadId }: RunRecord, { status, cost, error }: End): EventData {
  return { kind: 'agent', agentId, agentVersion, threadId, status, cost, errorCode: error?.code ?? null }
}

/** Returns the data of the event about the end of a workflow's run. */
export function describeWorkflowEnd({ workflowId, workflowVersion }: WorkflowRunRecord, { status, cost, error }: End): EventData {
  return { kind: 'workflow', workflowId, workflowVersion, status, cost, errorCode: error?.code ?? null }
}

/** Converts the event of a run's end for a webhook. */
export function toWebhookEvent({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  const { kind, status, cost, errorCode } = data
  const which =
    kind === 'agent'
      ? { agent_id: data.agentId, agent_version: data.agentVersion, thread_id: data.threadId }
      : { workflow_id: data.workflowId, workflow_version: data.workflowVersion }
  const end = { status, cost_usd: typeof cost === 'string' ? formatUsd(BigInt(cost)) : null, error_code: errorCode }
  return { type: `${kind}_run.${status}` as EventType, subject, sequence, at, data: { run_id: subject, ...which, ...end } }
}
