import { ERRORS } from '../../../../schema/errors.ts'
import { isAbsent, refuse, textAt } from '../../../common/check.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import { SCHEMA_PARAM } from '../../domain/agents/chat-of-agent.ts'
import { type AgentDefinition, readDefinition } from '../../domain/agents/definition.ts'
import { firstFreeMark } from '../../domain/agents/earlier-marks.ts'
import type { RunEvent } from '../../domain/agents/run.ts'
import { checkMessages } from '../../domain/chat/chat-messages.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { consumeRequest } from '../calls/limited-call.ts'
import { byRulesInForce } from '../calls/principals.ts'
import type { RequestContext, RunDeps } from '../deps.ts'
import { purgeDeletedAgents } from '../purge.ts'
import type { RunKind } from '../runs/run-kind.ts'
import type { RunLog } from '../runs/run-log.ts'
import { type Begun, keyedAs, Runs, type RunsOptions } from '../runs/runs.ts'
import type { AgentRecord, RunRecord } from '../tables.ts'
import { AgentWork } from './agent-work.ts'
import { admitModel, getAgent } from './agents.ts'
import { endRunsOfEarlierVersions } from './earlier-runs.ts'
import { checkSchemas } from './schema-replies.ts'
import { toStoredForm } from './stored-messages.ts'
import { deleteExpiredRunInputs, deleteRunInput, type StoredRunInput, storeRunInput } from './stored-run-input.ts'
import { continueThread, removeExpiredThreads } from './threads.ts'

/** Most runs of one process at once. Each holds its conversation in memory. */
const MAX_RUNS = 500
/** Longest time that a run may take. */
const MAX_RUN_MS = 900_000

export interface RunInput {
  /** The agent's id, or `agent/<code>`. */
  readonly agentId: string
  /** The question as text. */
  readonly input?: string | null
  /** A conversation in messages of the chat protocol, in place of `input`. The last message is the question. */
  readonly messages?: readonly unknown[] | null
  /**
   * A conversation that the service stores. Its messages come before the question; the question and the reply are added
   * to it.
   */
  readonly threadId?: string | null
  /** Stores the conversation in a new thread. */
  readonly keepThread?: boolean | null
  /** Most that the run may cost, in nano-USD. The agent's own limit applies as well. */
  readonly maxCost?: bigint | null
  /** A repeat with the same key returns the same run for as long as runs are stored. */
  readonly idempotencyKey?: string | null
  /** Fields of the chat protocol for the model calls. They override those of the agent. */
  readonly sampling?: ProtocolObject
  /** A schema from a chat request. It overrides that of the agent. */
  readonly responseSchema?: ProtocolObject | null
}

export class AgentRuns extends Runs<RunRecord, RunEvent> {
  readonly #deps: RunDeps
  /** The input of each run that is starting here, by run id. */
  readonly #storedInputs: Map<string, StoredRunInput>

  constructor(deps: RunDeps, options: RunsOptions) {
    const storedInputs = new Map<string, StoredRunInput>()
    super(deps, agentKind(deps, storedInputs), options)
    this.#deps = deps
    this.#storedInputs = storedInputs
  }

  /**
   * Checks the input, reserves the most that the run may cost, and starts the run. Returns the earlier run when one has
   * the same idempotency key. After an error no run has started, and no money is held.
   * @throws {KisError} `not_found`: the agent or the thread does not exist.
   * @throws {KisError} `invalid_request` and the like: the input is invalid.
   * @throws {KisError} as `Runs.startRun`.
   */
  start(requestContext: RequestContext, input: RunInput): Promise<Begun<RunRecord>> {
    return byRulesInForce(this.#deps, requestContext, (currentContext) => this.#start(currentContext, input))
  }

  async #start(requestContext: RequestContext, input: RunInput): Promise<Begun<RunRecord>> {
    const deps = this.#deps
    const principal = requireScope(requestContext.caller, 'agents')
    await this.ready
    const keyed = keyedAs('agent_run', principal, input)
    const earlier = keyed && (await this.earlier(keyed))
    if (earlier) {
      await consumeRequest(deps, requestContext)
      return { run: earlier, isReplayed: true }
    }
    const agent = await getAgent(deps, principal, input.agentId, 'input.agentId')
    const definition = definitionFor(agent, input)
    admitModel(deps, { caller: principal }, definition.modelId, 'input.agentId')
    const newMessages = readMessages(input)
    if (input.responseSchema)
      await checkSchemas(deps, principal, [{ schema: input.responseSchema, param: SCHEMA_PARAM }], requestContext.signal)
    const storedMessages = JSON.stringify(toStoredForm(newMessages))
    const thread = input.threadId == null ? null : await continueThread(deps, principal, input.threadId, agent._id, storedMessages)
    const runId = deps.ids('run')
    const storedInput = {
      agent: definition,
      messages: [...(thread?.messages ?? []), ...newMessages],
      beginsThread: thread === null,
      firstMark: thread?.firstMark ?? firstFreeMark(storedMessages),
    }
    this.#storedInputs.set(runId, storedInput)
    try {
      return await this.startRun(requestContext, principal, {
        runId,
        keyed,
        maxCost: least(input.maxCost ?? definition.maxCost, definition.maxCost),
        maxMs: MAX_RUN_MS,
        storeInput: () => storeRunInput(deps, runId, storedInput),
        record: (base) => ({
          ...base,
          agentId: agent._id,
          agentVersion: agent.version,
          threadId: input.threadId ?? (input.keepThread ? deps.ids('thr') : null),
          input: storedMessages,
          outcome: null,
          steps: '[]',
        }),
      })
    } finally {
      this.#storedInputs.delete(runId)
    }
  }
}

function agentKind(deps: RunDeps, storedInputs: ReadonlyMap<string, StoredRunInput>): RunKind<RunRecord, RunEvent> {
  return {
    noun: 'agent',
    records: deps.collections.runs,
    maxRuns: MAX_RUNS,
    isAwaited: true,
    // The failed run charged nothing, or an unknown amount, and a retry may succeed.
    freesKey: ({ error, cost }) => error !== null && (cost === '0' || cost === null) && ERRORS[error.code].retry,
    workOn: (run: RunRecord, log: RunLog<RunEvent>) => new AgentWork(deps, run, log, storedInputs.get(run._id) ?? null),
    deleteInput: (runId) => deleteRunInput(deps, runId),
    async sweep(log) {
      await deps.runEnds.sweep()
      await endRunsOfEarlierVersions(deps, log)
      await deleteExpiredRunInputs(deps)
      await removeExpiredThreads(deps)
      await purgeDeletedAgents(deps)
    },
  }
}

/** Returns the agent's definition with the fields that this run overrides. */
function definitionFor(agent: AgentRecord, { sampling, responseSchema }: RunInput): AgentDefinition {
  const definition = readDefinition(agent.definition)
  return {
    ...definition,
    sampling: { ...definition.sampling, ...sampling },
    responseSchema: responseSchema ?? definition.responseSchema,
  }
}

function readMessages({ input, messages, threadId, keepThread }: RunInput): readonly ProtocolObject[] {
  if (!isAbsent(input) && !isAbsent(messages)) refuse('invalid_request', 'input.messages', 'Send `input` or `messages`, not both.')
  if (keepThread && !isAbsent(threadId)) refuse('invalid_request', 'input.keepThread', 'A run continues a thread or begins one, not both.')
  if (isAbsent(messages)) {
    if (textAt(input, 'input.input').trim() === '') refuse('invalid_request', 'input.input', 'The question must not be empty.')
    return [{ role: 'user', content: input }]
  }
  checkMessages(messages, 'input.messages')
  return messages
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
