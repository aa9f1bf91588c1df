import type { ReadBudget } from '../../common/documents/long-records.ts'
import { requireScope } from '../../common/identity/principal.ts'
import { quantitiesOfSteps, type RunOutcome, type RunStep } from '../domain/agents/run.ts'
import { findRun, listAllRuns } from '../use-cases/agents/read-runs.ts'
import { runAgent, startAndFollow } from '../use-cases/agents/run-agent.ts'
import { deleteThread } from '../use-cases/agents/threads.ts'
import { fromJson } from '../use-cases/runs/run-json.ts'
import type { FollowedEvent } from '../use-cases/runs/run-log.ts'
import type { RunRecord } from '../use-cases/tables.ts'
import { toView } from './agents.ts'
import { chatUsage } from './chat.ts'
import type {
  AgentRunErrorResolvers,
  AgentRunEventResolvers,
  AgentRunResolvers,
  AgentRunStepResolvers,
  AgentSearchResolvers,
  CitationResolvers,
  MutationResolvers,
  QueryResolvers,
  SubscriptionResolvers,
} from './generated.ts'

export type Run = RunRecord & { readonly isReplayed?: boolean }
/** The event of a search that the agent made. */
export type Search = Extract<FollowedEvent['event'], { readonly type: 'search' }>

export const agentRunQueries: QueryResolvers = {
  agentRun: (_parent, { id }, { deps, ...requestContext }) => findRun(deps, requestContext, id),
  agentRuns: (_parent, args, { deps, budget, ...requestContext }) => listAllRuns(deps, requestContext, args, budget),
}

export const agentRunMutations: MutationResolvers = {
  runAgent: (_parent, { input }, { deps, ...requestContext }) => {
    requireScope(requestContext.caller, 'agents')
    return runAgent(deps.runs, requestContext, input)
  },
  cancelAgentRun: (_parent, { id }, { deps, ...requestContext }) => {
    requireScope(requestContext.caller, 'agents')
    return deps.runs.cancel(requestContext, id)
  },
  async deleteAgentRun(_parent, { id }, { deps, ...requestContext }) {
    await deps.runs.delete(requestContext, id)
    return { id }
  },
  async deleteThread(_parent, { id }, { deps, ...requestContext }) {
    await deleteThread(deps, requestContext, id)
    return { id }
  },
}

export const agentRunSubscriptions: SubscriptionResolvers = {
  agentRun: {
    subscribe: (_parent, { input }, { deps, ...requestContext }) => startAndFollow(deps.runs, requestContext, input),
    resolve: (event: FollowedEvent) => event,
  },
  agentRunEvents: {
    subscribe: (_parent, { runId, after }, { deps, caller }) =>
      deps.runs.log.followFor(requireScope(caller, 'agents'), runId, after ?? null),
    resolve: (event: FollowedEvent) => event,
  },
}

export const AgentRunFields: AgentRunResolvers = {
  id: ({ _id }) => _id,
  async agent({ agentId }, _args, { definitions, caller }) {
    const agent = await definitions.findAgent({ caller }, agentId)
    return agent && toView(agent)
  },
  messages: ({ input }, _args, { budget }) => JSON.parse(budget.charged(input)),
  outputText: (run, _args, { budget }) => parseOutcome(run, budget)?.text ?? null,
  output: (run, _args, { budget }) => parseOutcome(run, budget)?.output ?? null,
  citations: (run, _args, { budget }) => parseOutcome(run, budget)?.citations ?? [],
  steps: parseSteps,
  usage: (run) => chatUsage(quantitiesOfSteps(parseSteps(run))),
  replayed: ({ isReplayed }) => isReplayed === true,
  cost: ({ cost }) => (cost === null ? null : BigInt(cost)),
}

export const AgentRunErrorFields: AgentRunErrorResolvers = {
  code: ({ code }) => code.toUpperCase(),
}

export const AgentRunStepFields: AgentRunStepResolvers = {
  model: (step, _args, { deps }) => (step.kind === 'model' ? (deps.catalog.find(step.modelId) ?? null) : null),
  collection: (step) => (step.kind === 'search' ? { id: step.collectionId } : null),
  query: (step) => (step.kind === 'search' ? step.query : null),
  hitCount: (step) => (step.kind === 'search' ? step.hits : null),
  usage: (step) => (step.kind === 'model' ? chatUsage(step.quantities) : null),
}

export const CitationFields: CitationResolvers = {
  chunk: ({ chunkId }) => ({ id: chunkId }),
  collection: ({ collectionId }) => ({ id: collectionId }),
  document: ({ documentId }) => ({ id: documentId }),
  file: ({ fileId }) => ({ id: fileId }),
}

export const AgentSearchFields: AgentSearchResolvers = {
  collection: ({ collectionId }) => ({ id: collectionId }),
}

export const AgentRunEventFields: AgentRunEventResolvers = {
  type: ({ event }) => event.type,
  cursor: ({ sequence }) => String(sequence),
  number: ({ event }) => (event.type === 'usage' ? event.step.number : 'number' in event ? event.number : null),
  textDelta: ({ event }) => (event.type === 'text_delta' ? event.text : null),
  toolCall: ({ event }) => (event.type === 'tool_call' ? event : null),
  search: ({ event }) => (event.type === 'search' ? event : null),
  usage: ({ event }) => (event.type === 'usage' ? event.step : null),
  run: ({ event, runId }, _args, { deps, ...requestContext }) =>
    event.type === 'run_started' || event.type === 'done' ? findRun(deps, requestContext, runId) : null,
}

function parseOutcome({ outcome }: RunRecord, budget: ReadBudget): RunOutcome | null {
  return outcome === null ? null : JSON.parse(budget.charged(outcome))
}

function parseSteps({ steps }: RunRecord): readonly RunStep[] {
  return fromJson(steps)
}
