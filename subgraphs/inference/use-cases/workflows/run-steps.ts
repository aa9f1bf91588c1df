import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { countedUsage } from '../../domain/usage.ts'
import type { FoundPassages, PassageQuery } from '../../ports/knowledge.ts'
import type { CallContext, Deps } from '../deps.ts'
import { onceForStep } from '../once-for-step.ts'

/** Faults of an engine, which may pass. */
const PASSING: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout', 'engine_error']
/** What passes by itself and is waited for as long as the run has time: limits, a part of the service that is away, a call whose process was killed. */
const WAITED_FOR: readonly ErrorCode[] = ['rate_limit_exceeded', 'service_unavailable', 'idempotency_conflict']
/** Tries of one call whose engine fails; the waits between them double, from a second to a minute, with jitter. */
const MAX_TRIES = 6
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000

/** Why a run leaves its calls for others to go on with: the process stops, or has lost the run. */
export class LeftToOthers extends Error {}

/** The paid calls of one run, each made once whoever runs it. */
export class RunSteps {
  readonly #deps: Deps
  readonly #runId: string
  readonly #context: CallContext
  /** By node, in nano-USD. */
  readonly #costs = new Map<string, bigint>()

  /** The context's signal ends the run's calls; aborted by `LeftToOthers`, they are free. */
  constructor(deps: Deps, runId: string, context: CallContext) {
    this.#deps = deps
    this.#runId = runId
    this.#context = context
  }

  /** Makes the call, or gives its answer from before. What may pass is waited for. @throws {KisError} */
  async once<Value extends { readonly cost: bigint }>(path: string, work: (context: CallContext) => Promise<Value>): Promise<Value> {
    const value = await this.#retried(() => onceForStep(this.#deps, this.#context, this.#claim(path), work))
    this.#paid(path, value.cost)
    return value
  }

  /** What the calls of a node were charged so far, in nano-USD. */
  costOf(nodeId: string): bigint {
    return this.#costs.get(nodeId) ?? 0n
  }

  /** The embedding is a step of its own, and the answer is kept, so that what rests on it finds the same passages. */
  async search(path: string, query: PassageQuery): Promise<FoundPassages> {
    const step = { runId: this.#runId, path: `${path}/embedding` }
    const found = await this.kept(path, (context) => this.#deps.knowledge.search({ ...query, step }, context))
    this.#paid(path, found.cost)
    return found
  }

  /** What is not charged as this step, but has the same answer whoever goes on with the run: a tool may act. Made again only when it was cut, since nobody knows what came of it. */
  async kept<Value>(path: string, work: (context: CallContext) => Promise<Value>): Promise<Value> {
    const { answer } = await this.#retried(() =>
      onceForStep(this.#deps, this.#context, this.#claim(path), async ({ record, ...context }) => {
        const answer = await work(context)
        await record.answered(countedUsage(0, 0), { answer })
        return { answer, cost: 0n }
      }),
    )
    return answer
  }

  #paid(path: string, cost: bigint): void {
    const [nodeId = ''] = path.split('/')
    this.#costs.set(nodeId, this.costOf(nodeId) + cost)
  }

  #claim(path: string) {
    const { signal } = this.#context
    return { runId: this.#runId, path, isFree: () => !signal.aborted || signal.reason instanceof LeftToOthers }
  }

  async #retried<Value>(call: () => Promise<Value>): Promise<Value> {
    const { signal } = this.#context
    for (let tries = 1, waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      signal.throwIfAborted()
      try {
        return await call()
      } catch (error) {
        if (!(error instanceof KisError) || !error.shouldRetry) throw error
        if (!WAITED_FOR.includes(error.code) && (!PASSING.includes(error.code) || tries++ >= MAX_TRIES)) throw error
        const jittered = waitMs * (0.5 + Math.random() / 2)
        await this.#deps.clock.sleep(Math.min(LONGEST_WAIT_MS, Math.max(error.retryAfterMs ?? 0, jittered)), signal)
      }
    }
  }
}
