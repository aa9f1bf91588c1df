import { isAbort, KisError } from '../../../common/errors.ts'
import type { RunError, RunEvent, RunOutcome, RunStep } from '../../domain/agents/run.ts'
import type { KeyedDeps } from '../deps.ts'
import { describeAgentEnd } from '../runs/run-ends.ts'
import { toJson } from '../runs/run-json.ts'
import type { ActiveRun, AtEnd, EndFields, RunEnd, RunWork } from '../runs/run-kind.ts'
import type { RunLog } from '../runs/run-log.ts'
import { LeftToOthers } from '../runs/run-steps.ts'
import type { RunRecord } from '../tables.ts'
import { runAgentLoop } from './agent-loop.ts'
import { admitModel } from './agents.ts'
import { callModel } from './model-step.ts'
import { RunProgress } from './run-progress.ts'
import { readRunInput, type StoredRunInput } from './stored-run-input.ts'
import { addToThread } from './threads.ts'

/** The work on one run of an agent in one process. */
export class AgentWork implements RunWork<RunEvent> {
  readonly #deps: KeyedDeps
  readonly #run: RunRecord
  readonly #log: RunLog<RunEvent>
  #storedInput: StoredRunInput | null
  #progress: RunProgress | undefined

  /** `given` is null when another process started the run. */
  constructor(deps: KeyedDeps, run: RunRecord, log: RunLog<RunEvent>, storedInput: StoredRunInput | null) {
    this.#deps = deps
    this.#run = run
    this.#log = log
    this.#storedInput = storedInput
  }

  async work({ context, steps, writer, write, gotFurther }: ActiveRun<RunEvent>): Promise<RunEnd> {
    const deps = this.#deps
    const { signal } = context
    const progress = new RunProgress(writer)
    this.#progress = progress
    progress.report({ type: 'run_started', agentVersion: this.#run.agentVersion })
    // The first event tells a follower the id of its run, so it is written before anything else happens.
    await progress.flushed()
    this.#storedInput ??= await readRunInput(deps, this.#run._id)
    if (!this.#storedInput) return { status: 'failed', error: { code: 'internal', message: 'The messages of the run are lost.' } }
    const { agent, messages, firstMark } = this.#storedInput
    let mayBePoison = this.#run.job!.starts > 1
    const done = async <Value>(call: Promise<Value>): Promise<Value> => {
      const value = await call
      if (mayBePoison) await write(gotFurther)
      mayBePoison = false
      return value
    }
    try {
      const outcome = await runAgentLoop(deps, {
        agent,
        model: admitModel(deps, context, agent.modelId, 'input.agentId'),
        messages,
        firstMark,
        context,
        emit: (event) => progress.report(event),
        calls: {
          callModel: (name, request, { number, start }) => {
            const once = steps.once(name, (stepContext) => {
              progress.modelCalled(number)
              return callModel(deps, stepContext, request, start())
            })
            return done(once)
          },
          search: (name, query) => done(steps.search(name, query)),
          tool: (name, call) => done(steps.recorded(name, call)),
        },
      })
      await progress.flushed()
      return { status: 'completed', output: outcome }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof LeftToOthers) throw error
      await progress.flushed()
      return { status: 'failed', error: this.#toRunError(error) }
    }
  }

  async atEnd(end: EndFields, output: unknown, _charges: ReadonlyMap<string, bigint>): Promise<AtEnd> {
    const outcome = output as RunOutcome | null
    if (outcome && this.#run.threadId) await addToThread(this.#deps, this.#run, this.#storedInput!, outcome)
    const steps = this.#progress?.receipt ?? (await writtenSteps(this.#log, this.#run._id))
    return {
      fields: { outcome: outcome && JSON.stringify(outcome), steps: toJson(withRest(steps, BigInt(end.cost))) },
      event: describeAgentEnd(this.#run, end),
    }
  }

  #toRunError(error: unknown): RunError {
    if (error instanceof KisError) return { code: error.code, message: error.message }
    if (isAbort(error)) return { code: 'service_unavailable', message: 'The run was ended.' }
    this.#deps.log.error({ err: error, runId: this.#run._id }, 'defect in a run')
    return { code: 'internal', message: 'The service failed to run the agent.' }
  }
}

/** Returns the receipt of a run from the events written so far. */
export async function writtenSteps(log: RunLog<RunEvent>, runId: string): Promise<readonly RunStep[]> {
  const steps: RunStep[] = []
  for await (const event of log.written(runId)) if (event.type === 'usage') steps.push(event.step)
  return steps
}

/** Adds a line for the charges of calls that were cut, so that the lines sum to the whole charge. */
function withRest(steps: readonly RunStep[], cost: bigint): readonly RunStep[] {
  const rest = cost - steps.reduce((sum, step) => sum + step.cost, 0n)
  if (rest <= 0n) return steps
  return [...steps, { kind: 'cut', number: steps.at(-1)?.number ?? 1, cost: rest }]
}
