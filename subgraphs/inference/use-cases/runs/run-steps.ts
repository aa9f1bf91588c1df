import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { countedUsage } from '../../domain/tokens/usage.ts'
import type { FoundPassages, PassageQuery } from '../../ports/knowledge.ts'
import type { CallContext, KeyedDeps } from '../deps.ts'
import { onceForStep } from '../idempotency/once-for-step.ts'

/** Faults of an engine, which may pass. */
const PASSING: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout', 'engine_error']
/** A call of a process that is gone has not ended yet. */
const LEFT: readonly ErrorCode[] = ['idempotency_conflict']
/**
 * What passes by itself and is waited for as long as the run has time: limits, a part of the service that is away, a
 * call whose process was killed.
 */
const WAITED_FOR: readonly ErrorCode[] = ['rate_limit_exceeded', 'service_unavailable', 'idempotency_conflict']
/** Tries of one call whose engine fails; the waits between them double, from a second to a minute, with jitter. */
const MAX_TRIES = 6
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000

/** A run none of whose calls was under way for so long, while some wait longer, gives its place to others meanwhile. */
const STILL_MS = 2_000

/** Why a run leaves its calls for others to go on with: the process stops, or has lost the run. */
export class LeftToOthers extends Error {}

/** All that the run does is wait: it is to go on at `dueAt`, in whatever process, and needs none until then. */
export class PutOff extends LeftToOthers {
  readonly dueAt: Date
  readonly waits: Waits

  constructor(dueAt: Date, waits: Waits) {
    super('the run waits')
    this.dueAt = dueAt
    this.waits = waits
  }
}

/** Calls that wait to be made again, by path. */
export type Waits = Readonly<Record<string, Wait>>

interface Wait {
  readonly tries: number
  /** The next one, before jitter. */
  readonly waitMs: number
  /** When it is made again, in ms since 1970. */
  readonly dueMs: number
}

interface RunStepsOptions {
  /** Of the process that the run was put off by. */
  readonly waits: Waits
  /** A caller waits for the run at a connection: what may pass is no reason to keep the caller waiting. */
  readonly isAwaited: boolean
  /** Hears when the run does nothing but wait. */
  readonly putOff: (reason: PutOff) => void
  /** Done before each call; not where its answer is there from before. */
  readonly calling: () => Promise<void>
}

/** The paid calls of one run, each made once whoever runs it. */
export class RunSteps {
  readonly #deps: KeyedDeps
  readonly #runId: string
  readonly #context: CallContext
  /** By node, in nano-USD. */
  readonly #costs = new Map<string, bigint>()
  readonly #putOff: (reason: PutOff) => void
  readonly #waits: Map<string, Wait>
  readonly #waitedFor: readonly ErrorCode[]
  readonly #passing: readonly ErrorCode[]
  readonly #calling: () => Promise<void>
  /** Calls under way, and how many have begun. */
  #underWay = 0
  #begun = 0

  /**
   * The context's signal ends the run's calls; aborted by `LeftToOthers`, they are free.
   */
  constructor(deps: KeyedDeps, runId: string, context: CallContext, { waits, isAwaited, putOff, calling }: RunStepsOptions) {
    this.#waits = new Map(Object.entries(waits))
    this.#waitedFor = isAwaited ? LEFT : WAITED_FOR
    this.#passing = isAwaited ? [] : PASSING
    this.#putOff = putOff
    this.#calling = calling
    this.#deps = deps
    this.#runId = runId
    this.#context = context
  }

  /** Makes the call, or gives its answer from before. What may pass is waited for. @throws {KisError} */
  async once<Value extends { readonly cost: bigint }>(path: string, work: (context: CallContext) => Promise<Value>): Promise<Value> {
    const value = await this.#retried(path, async () =>
      onceForStep(this.#deps, await this.#now(), this.#claim(path), async (context) => {
        await this.#calling()
        return work(context)
      }),
    )
    this.#paid(path, value.cost)
    return value
  }

  /** What the calls of a node were charged so far, in nano-USD. */
  getCost(nodeId: string): bigint {
    return this.#costs.get(nodeId) ?? 0n
  }

  /** The embedding is a step of its own, and the answer is kept, so that what rests on it finds the same passages. */
  async search(path: string, query: PassageQuery): Promise<FoundPassages> {
    const step = { runId: this.#runId, path: `${path}/embedding` }
    const found = await this.kept(path, (context) => this.#deps.knowledge.search({ ...query, step }, context))
    this.#paid(path, found.cost)
    return found
  }

  /**
   * What is not charged as this step, but has the same answer whoever goes on with the run: a tool may act. Made again
   * only when it was cut, since nobody knows what came of it.
   */
  async kept<Value>(path: string, work: (context: CallContext) => Promise<Value>): Promise<Value> {
    const { answer } = await this.#retried(path, async () =>
      onceForStep(this.#deps, await this.#now(), this.#claim(path), async ({ record, ...context }) => {
        await this.#calling()
        const answer = await work(context)
        await record.answered(countedUsage(0, 0), { answer })
        return { answer, cost: 0n }
      }),
    )
    return answer
  }

  /**
   * The run's caller may have been given other rules since the step before.
   * @throws {KisError} the run may not go on.
   */
  async #now(): Promise<CallContext> {
    return { ...this.#context, caller: await this.#deps.principals.recent(this.#context.caller) }
  }

  #paid(path: string, cost: bigint): void {
    const [nodeId = ''] = path.split('/')
    this.#costs.set(nodeId, this.getCost(nodeId) + cost)
  }

  #claim(path: string) {
    const { signal } = this.#context
    return { runId: this.#runId, path, isFree: () => !signal.aborted || signal.reason instanceof LeftToOthers }
  }

  async #retried<Value>(path: string, call: () => Promise<Value>): Promise<Value> {
    const { signal } = this.#context
    for (;;) {
      await this.#wait(path)
      signal.throwIfAborted()
      this.#underWay += 1
      this.#begun += 1
      try {
        const value = await call()
        this.#waits.delete(path)
        return value
      } catch (error) {
        this.#waits.set(path, this.#waitAfter(error, this.#waits.get(path)))
      } finally {
        this.#underWay -= 1
      }
    }
  }

  /** @throws the error, when another try is of no use. */
  #waitAfter(error: unknown, { tries, waitMs }: Wait = { tries: 1, waitMs: FIRST_WAIT_MS, dueMs: 0 }): Wait {
    if (!(error instanceof KisError) || !error.shouldRetry) throw error
    const isPassing = this.#waitedFor.includes(error.code)
    if (!isPassing && (!this.#passing.includes(error.code) || tries >= MAX_TRIES)) throw error
    const jittered = waitMs * (0.5 + Math.random() / 2)
    const now = this.#deps.clock.now().getTime()
    return {
      tries: isPassing ? tries : tries + 1,
      waitMs: Math.min(waitMs * 2, LONGEST_WAIT_MS),
      dueMs: now + Math.min(LONGEST_WAIT_MS, Math.max(error.retryAfterMs ?? 0, jittered)),
    }
  }

  /** Until the call may be made again. @throws the signal's reason. */
  async #wait(path: string): Promise<void> {
    const { clock } = this.#deps
    const { signal } = this.#context
    const leftMs = () => (this.#waits.get(path)?.dueMs ?? 0) - clock.now().getTime()
    const begun = this.#begun
    if (leftMs() > STILL_MS) {
      await clock.sleep(STILL_MS, signal)
      if (this.#underWay === 0 && this.#begun === begun) this.#putOff(this.#untilNext())
    }
    const restMs = leftMs()
    if (restMs > 0) await clock.sleep(restMs, signal)
  }

  #untilNext(): PutOff {
    const dueMs = Math.min(...[...this.#waits.values()].map((wait) => wait.dueMs))
    return new PutOff(new Date(dueMs), Object.fromEntries(this.#waits))
  }
}
