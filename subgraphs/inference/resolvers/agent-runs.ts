import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import { type Citation, quantitiesOfSteps, RUN_STATUSES, type RunError, type RunOutcome, type RunStep } from '../domain/agents/run.ts'
import type { RunInput } from '../use-cases/agents/agent-runs.ts'
import { runAgent, startAndFollow } from '../use-cases/agents/run-agent.ts'
import { type FollowedEvent, fromJson } from '../use-cases/agents/run-log.ts'
import { deleteThread } from '../use-cases/agents/threads.ts'
import type { ServedDeps } from '../use-cases/deps.ts'
import type { RunRecord } from '../use-cases/tables.ts'
import { findAgent } from './agents.ts'
import { chatUsage } from './chat.ts'

type Context = ResolverContext<ServedDeps>
interface Input {
  readonly input: RunInput
}

export const agentRunQueries = {
  agentRun: (_parent: unknown, { id }: { id: string }, context: Context) => findRun(context, id),
}

export const agentRunMutations = {
  runAgent: (_parent: unknown, { input }: Input, { deps, ...ask }: Context) => {
    requireScope(ask.caller, 'agents')
    return runAgent(deps.runs, ask, input)
  },
  cancelAgentRun: (_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) => {
    requireScope(ask.caller, 'agents')
    return deps.runs.cancel(ask, id)
  },
  async deleteAgentRun(_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) {
    await deps.runs.delete(ask, id)
    return { id }
  },
  async deleteThread(_parent: unknown, { id }: { id: string }, { deps, ...ask }: Context) {
    await deleteThread(deps, ask, id)
    return { id }
  },
}

export const agentRunSubscriptions = {
  agentRun: {
    subscribe: (_parent: unknown, { input }: Input, { deps, ...ask }: Context) => startAndFollow(deps.runs, ask, input),
    resolve: (event: FollowedEvent) => event,
  },
  agentRunEvents: {
    subscribe: (_parent: unknown, { runId, after }: { runId: string; after?: string | null }, { deps, caller }: Context) =>
      deps.runs.log.followFor(requireScope(caller, 'agents'), runId, after ?? null),
    resolve: (event: FollowedEvent) => event,
  },
}

const EVENT_TYPES = ['run_started', 'step_started', 'text_delta', 'tool_call', 'search', 'usage', 'done'] as const
const STEP_KINDS = ['model', 'search', 'cut'] as const

export const AgentRunStatusValues = enumOf(RUN_STATUSES)
export const AgentRunEventTypeValues = enumOf(EVENT_TYPES)
export const AgentRunStepKindValues = enumOf(STEP_KINDS)

export const AgentRunFields = {
  id: ({ _id }: RunRecord) => _id,
  agent: ({ agentId }: RunRecord, _args: unknown, { deps, caller }: Context) => findAgent(deps, requireScope(caller, 'agents'), agentId),
  messages: ({ input }: RunRecord) => JSON.parse(input),
  outputText: (run: RunRecord) => outcomeOf(run)?.text ?? null,
  output: (run: RunRecord) => outcomeOf(run)?.output ?? null,
  citations: (run: RunRecord) => outcomeOf(run)?.citations ?? [],
  steps: stepsOf,
  usage: (run: RunRecord) => chatUsage(quantitiesOfSteps(stepsOf(run))),
  replayed: ({ isReplayed }: RunRecord & { readonly isReplayed?: boolean }) => isReplayed === true,
  cost: ({ cost }: RunRecord) => (cost === null ? null : BigInt(cost)),
}

export const AgentRunErrorFields = {
  code: ({ code }: RunError) => code.toUpperCase(),
}

export const AgentRunStepFields = {
  model: (step: RunStep, _args: unknown, { deps }: Context) => (step.kind === 'model' ? (deps.catalog.find(step.modelId) ?? null) : null),
  collection: (step: RunStep) => (step.kind === 'search' ? { id: step.collectionId } : null),
  hitCount: (step: RunStep) => (step.kind === 'search' ? step.hits : null),
  usage: (step: RunStep) => (step.kind === 'model' ? chatUsage(step.quantities) : null),
}

export const CitationFields = {
  collection: ({ collectionId }: Citation) => ({ id: collectionId }),
  document: ({ documentId }: Citation) => ({ id: documentId }),
  file: ({ fileId }: Citation) => ({ id: fileId }),
}

export const AgentSearchFields = {
  collection: ({ collectionId }: { readonly collectionId: string }) => ({ id: collectionId }),
}

export const AgentRunEventFields = {
  type: ({ event }: FollowedEvent) => event.type,
  cursor: ({ sequence }: FollowedEvent) => String(sequence),
  number: ({ event }: FollowedEvent) => (event.type === 'usage' ? event.step.number : 'number' in event ? event.number : null),
  textDelta: ({ event }: FollowedEvent) => (event.type === 'text_delta' ? event.text : null),
  toolCall: ({ event }: FollowedEvent) => (event.type === 'tool_call' ? event : null),
  search: ({ event }: FollowedEvent) => (event.type === 'search' ? event : null),
  usage: ({ event }: FollowedEvent) => (event.type === 'usage' ? event.step : null),
  run: ({ event, runId }: FollowedEvent, _args: unknown, context: Context) =>
    event.type === 'run_started' || event.type === 'done' ? findRun(context, runId) : null,
}

/** Null also for another organization's. */
function findRun({ deps, caller }: Context, id: string): Promise<RunRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  return deps.collections.runs.findOne({ _id: id, organizationId })
}

function outcomeOf({ outcome }: RunRecord): RunOutcome | null {
  return outcome === null ? null : JSON.parse(outcome)
}

function stepsOf({ steps }: RunRecord): readonly RunStep[] {
  return fromJson(steps)
}

/** `{ RUNNING: 'running' }`: enum values are lower case inside. */
export function enumOf<T extends string>(values: readonly T[]) {
  return Object.fromEntries(values.map((value) => [value.toUpperCase(), value]))
}
