import { checkJson, objectAt, refuse } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import { readMaxCost, readMaxSeconds, type WorkflowDefinition } from '../../domain/workflows/definition.ts'
import type { NodeRun, WorkflowEvent } from '../../domain/workflows/run.ts'
import { admitModel, getAgent } from '../agents/agents.ts'
import { checkBySchema } from '../agents/schema-replies.ts'
import { consumeRequest } from '../calls/limited-call.ts'
import { byRulesInForce } from '../calls/principals.ts'
import type { RequestContext, RunDeps } from '../deps.ts'
import { purgeDeletedWorkflows } from '../purge.ts'
import type { RunKind } from '../runs/run-kind.ts'
import { type Begun, keyedAs, Runs, type RunsOptions } from '../runs/runs.ts'
import type { WorkflowRunRecord } from '../tables.ts'
import type { PinnedAgent } from './node-task.ts'
import { WorkflowWork } from './workflow-work.ts'
import { checkModel, getWorkflow, listTasks } from './workflows.ts'

/** Most runs of one process at once. Each holds a few megabytes of outputs in memory. Others wait in the store. */
const MAX_RUNS = 200
/** Most runs of one organization that have not ended. Waiting runs are checked once a minute, with about ten reads. */
const MAX_OPEN_RUNS = 500
/** Retry time that a refused caller gets. When a run of the organization ends is unknown. */
const FULL_RETRY_MS = 10_000
const MAX_INPUT_CHARACTERS = 262_144

interface WorkflowRunInput {
  /** The workflow's id, or `workflow/<code>`. */
  readonly workflowId: string
  readonly inputs?: unknown
  /** Most that the run may cost, in nano-USD. The workflow's own limit applies as well. */
  readonly maxCost?: bigint | null
  /** Longest time that the run may take. The workflow's own limit applies as well. */
  readonly maxSeconds?: number | null
  /** A repeat with the same key returns the same run for as long as runs are kept. */
  readonly idempotencyKey?: string | null
}

/** Runs of workflows. */
export class WorkflowRuns extends Runs<WorkflowRunRecord, WorkflowEvent> {
  readonly #deps: RunDeps
  /** The number of starts in progress that the store does not count yet, by organization. */
  readonly #starting = new Map<string, number>()

  constructor(deps: RunDeps, options: RunsOptions) {
    super(deps, workflowKind(deps), options)
    this.#deps = deps
  }

  /**
   * Checks the input, reserves the most that the run may cost, and records the run, which starts as soon as a place is
   * free. Returns without waiting for it. Returns the earlier run when one has the same idempotency key. After an error
   * no run has started, and no money is held.
   * @throws {KisError} `not_found`: the workflow, or an agent in it, does not exist.
   * @throws {KisError} `rate_limit_exceeded`: 500 runs of the organization have not ended.
   * @throws {KisError} `invalid_request`, `unsupported_value` and the like: the input is invalid.
   * @throws {KisError} as `Runs.begin`.
   */
  start(requestContext: RequestContext, input: WorkflowRunInput): Promise<WorkflowRunRecord> {
    return byRulesInForce(this.#deps, requestContext, async (currentContext) => (await this.#start(currentContext, input)).run)
  }

  async #start(requestContext: RequestContext, input: WorkflowRunInput): Promise<Begun<WorkflowRunRecord>> {
    const deps = this.#deps
    const principal = requireScope(requestContext.caller, 'agents')
    await this.ready
    const keyed = keyedAs('workflow_run', principal, input)
    const earlier = keyed && (await this.earlier(keyed))
    if (earlier) {
      await consumeRequest(deps, requestContext)
      return { run: earlier, isReplayed: true }
    }
    const workflow = await getWorkflow(deps, principal, input.workflowId, 'input.workflowId')
    const definition = JSON.parse(workflow.definition) as WorkflowDefinition
    const inputs = checkInputs(input.inputs)
    if (definition.inputs)
      await checkBySchema(deps, principal, definition.inputs, inputs, { param: 'input.inputs', whole: 'The inputs' }, requestContext.signal)
    const agents = await pinnedAgents(deps, principal, definition)
    const maxCost = least(input.maxCost ?? readMaxCost(definition), readMaxCost(definition))
    if (maxCost <= 0n) refuse('unsupported_value', 'input.maxCost', 'The most that a run may cost is above 0.')
    const maxSeconds = Math.min(input.maxSeconds ?? readMaxSeconds(definition), readMaxSeconds(definition))
    if (maxSeconds < 1) refuse('integer_below_min_value', 'input.maxSeconds', "'input.maxSeconds' must be at least 1.")
    const counted = await this.#countIn(principal)
    try {
      return await this.startRun(requestContext, principal, {
        runId: deps.ids('wfr'),
        keyed,
        maxCost,
        maxMs: maxSeconds * 1_000,
        storeInput: async () => undefined,
        record: (base) => ({
          ...base,
          job: { ...base.job!, workflowId: workflow._id },
          workflowId: workflow._id,
          workflowVersion: workflow.version,
          inputs,
          output: null,
          nodes: Object.fromEntries(definition.nodes.map(({ id }) => [id, PENDING])),
          agents: JSON.stringify(agents),
          error: null,
        }),
      })
    } finally {
      counted()
    }
  }

  /**
   * Counts a run that starts. Returns the function that ends the counting, once the run is in the store.
   * @throws {KisError} `rate_limit_exceeded`: too many runs of the organization have not ended.
   */
  async #countIn({ organizationId }: Principal): Promise<() => void> {
    const starting = this.#starting.get(organizationId) ?? 0
    this.#starting.set(organizationId, starting + 1)
    const over = () => {
      const left = this.#starting.get(organizationId)! - 1
      if (left > 0) this.#starting.set(organizationId, left)
      else this.#starting.delete(organizationId)
    }
    try {
      const open = await this.#deps.collections.workflowRuns.countDocuments({ 'job.organizationId': organizationId })
      if (open + starting < MAX_OPEN_RUNS) return over
      const text = `Rate limit reached: the organization may have ${MAX_OPEN_RUNS} runs of workflows that have not ended. Wait for some of them, or cancel them.`
      throw new KisError('rate_limit_exceeded', text, { retryAfterMs: FULL_RETRY_MS })
    } catch (error) {
      over()
      throw error
    }
  }
}

function workflowKind(deps: RunDeps): RunKind<WorkflowRunRecord, WorkflowEvent> {
  return {
    noun: 'workflow',
    records: deps.collections.workflowRuns,
    maxRuns: MAX_RUNS,
    isAwaited: false,
    freesKey: () => false,
    workOn: (run) => new WorkflowWork(deps, run),
    // The record has all that a run needs.
    deleteInput: async () => undefined,
    sweep: () => purgeDeletedWorkflows(deps),
  }
}

const PENDING: NodeRun = { state: 'pending', output: null, cost: '0', error: null, startedAt: null, endedAt: null }
/**
 * Returns the inputs as JSON.
 * @throws {KisError} `invalid_request` and the like: they are not an object, or too deep or too long.
 */
function checkInputs(value: unknown): string {
  const inputs = objectAt(value ?? {}, 'input.inputs')
  checkJson(inputs, 'input.inputs')
  const text = JSON.stringify(inputs)
  if (text.length > MAX_INPUT_CHARACTERS)
    refuse('string_above_max_length', 'input.inputs', `The inputs have at most ${MAX_INPUT_CHARACTERS} characters as JSON.`)
  return text
}

/** Checks that the caller may use the models and that the agents exist. Returns the agents with their versions. */
async function pinnedAgents(
  deps: RunDeps,
  caller: Principal,
  definition: WorkflowDefinition,
): Promise<Readonly<Record<string, PinnedAgent>>> {
  const pinned: Record<string, PinnedAgent> = {}
  for (const { task } of listTasks(definition)) {
    if (task.type === 'chat') admitModel(deps, { caller }, task.model, 'input.workflowId')
    if (task.type === 'transcribe') checkModel(deps, caller, 'transcription', task.model, 'input.workflowId')
    if (task.type !== 'agent') continue
    const { _id: agentId, version } = await getAgent(deps, caller, task.agent_id, 'input.workflowId')
    pinned[task.agent_id] = { agentId, version }
  }
  return pinned
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
