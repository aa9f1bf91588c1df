import type { EventRecord } from '../../common/events/event-log.ts'
import { requireScope } from '../../common/identity/principal.ts'
import { findRun } from '../use-cases/agents/read-runs.ts'
import { findWorkflowRun } from '../use-cases/workflows/read-runs.ts'
import type { RunEndedResolvers, SubscriptionResolvers } from './generated.ts'

export const runEndedSubscriptions: SubscriptionResolvers = {
  runEnded: {
    subscribe: (_parent, { after }, { deps, caller }) => deps.runEnds.follow(requireScope(caller, 'agents').organizationId, after ?? null),
    resolve: (event: EventRecord) => event,
  },
}

export const RunEndedFields: RunEndedResolvers = {
  runId: ({ subject }) => subject,
  agentRun: ({ subject, data }, _args, { deps, ...requestContext }) =>
    data.kind === 'agent' ? findRun(deps, requestContext, subject) : null,
  workflowRun: ({ subject, data }, _args, { deps, ...requestContext }) =>
    data.kind === 'workflow' ? findWorkflowRun(deps, requestContext, subject) : null,
  cursor: ({ sequence }) => String(sequence),
}
