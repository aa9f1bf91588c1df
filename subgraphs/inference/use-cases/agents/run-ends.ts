import type { EventData, EventRecord } from '../../../common/event-log.ts'
import { formatUsd } from '../../../common/usd.ts'
import type { WebhookEvent } from '../../../common/webhook-events.ts'
import type { RunStatus } from '../../domain/agents/run.ts'
import type { RunRecord } from '../collections.ts'

/** What the log of an organization's runs says of one that has ended. */
export function endOf(run: RunRecord, { status, cost, error }: Pick<RunRecord, 'status' | 'cost' | 'error'>): EventData {
  const { agentId, agentVersion, threadId } = run
  return { agentId, agentVersion, threadId, status, cost, errorCode: error?.code ?? null }
}

/** The same for a webhook. */
export function webhookEventOf({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  const { agentId, agentVersion, threadId, status, cost, errorCode } = data
  return {
    type: `agent_run.${status as Exclude<RunStatus, 'running'>}`,
    subject,
    sequence,
    at,
    data: {
      run_id: subject,
      agent_id: agentId,
      agent_version: agentVersion,
      thread_id: threadId,
      status,
      cost_usd: typeof cost === 'string' ? formatUsd(BigInt(cost)) : null,
      error_code: errorCode,
    },
  }
}
