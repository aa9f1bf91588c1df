import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError } from '../../../common/errors.ts'
import { countedUsage } from '../../domain/tokens/usage.ts'
import type { ChunkQuery, FoundChunks } from '../../ports/knowledge.ts'
import type { CallContext, KeyedDeps } from '../deps.ts'
import { onceForStep } from '../idempotency/once-for-step.ts'
import { toJson } from './run-json.ts'

/** Errors of an engine that may be temporary. */
const PASSING: readonly ErrorCode[] = ['engine_unavailable', 'engine_timeout', 'engine_error']
/** Errors about a call whose process is gone and whose lease has not expired yet. */
const LEFT: readonly ErrorCode[] = ['idempotency_conflict']
/**
 * Errors that end by themselves: limits, an unavailable part of the service, a call whose process was killed. A call is
 * retried after them as long as the run has time.
 */
const WAITED_FOR: readonly ErrorCode[] = ['rate_limit_exceeded', 'service_unavailable', 'index_rebuilding', 'idempotency_conflict']
/** Most attempts at a call whose engine fails. The waits between them double from 1 s to 60 s, with jitter. */
const MAX_TRIES = 6
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000

/**
 * A run gives its place to others when no call of it was in progress for this long and its next retry is due later.
 */
const STILL_MS = 2_000

/** The reason why a run leaves its calls to another process: this process stops, or has lost the run. */
export class LeftToOthers extends Error {}

/** The reason why a run gives up its process: it only waits. Any process can continue it at `dueAt`. */
export class PutOff extends LeftToOthers {
  readonly dueAt: Date
  readonly waits: Waits

  constructor(dueAt: Date, waits: Waits) {
    super('the run waits')
    this.dueAt = dueAt
    this.waits = waits
  }
}

/** Calls that wait for a retry, by path. */
export type Waits = Readonly<Record<string, Wait>>

interface Wait {
  readonly tries: number
  /** The next wait, before jitter. */
  readonly waitMs: number
  /** The time of the retry, in milliseconds since 1970. */
  readonly dueMs: number
}

interface RunStepsOptions {
  /** The waits that the run had when a process put it off. */
  readonly waits: Waits
  /** A caller waits for the run on a connection, so a temporary error fails the run instead of delaying it. */
  readonly isAwaited: boolean
  /** Called when the run only waits. */
  readonly putOff: (reason: PutOff) => void
  /** Called before each call that is made, not before one whose answer is kept. */
  readonly calling: () => Promise<void>
}

/** The paid calls of one run. Each is made once, whichever process runs it. */
export class RunSteps {
  readonly #deps: KeyedDeps
  readonly #runId: string
  readonly #context: CallContext
  /** Charges in nano-USD, by node. */
  readonly #costs = new Map<string, bigint>()
  readonly #putOff: (reason: PutOff) => void
  readonly #waits: Map<string, Wait>
  readonly #waitedFor: readonly ErrorCode[]
  readonly #passing: readonly ErrorCode[]
  readonly #calling: () => Promise<void>
  /** The number of calls in progress, and of calls started so far. */
  #inFlight = 0
  #begun = 0
  #characters = 0

  /**
   * The signal of `context` ends the run's calls. If its reason is `LeftToOthers`, calls that are cut are free.
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

  /**
   * Makes the call, or returns its kept answer. Temporary errors are retried.
   * @throws {KisError} the error of the call, when a retry cannot help.
   */
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

  /** The characters of the answers that this process has, as JSON. They are kept with the run. */
  get characters(): number {
    return this.#characters
  }

  /** Returns what the calls of a node were charged so far, in nano-USD. */
  getCost(nodeId: string): bigint {
    return this.#costs.get(nodeId) ?? 0n
  }

  /** Searches. The embedding is its own step. The result is kept, so that what depends on it sees the same passages. */
  async search(path: string, query: ChunkQuery): Promise<FoundChunks> {
    const step = { runId: this.#runId, path: `${path}/embedding` }
    const found = await this.recorded(path, (context) => this.#deps.knowledge.search({ ...query, step }, context))
    this.#paid(path, found.cost)
    return found
  }

  /**
   * Does work that this step does not pay for, and keeps its answer for every process that continues the run. The work
   * may be a tool that acts, so it is repeated only if it was cut and its outcome is unknown.
   */
  async recorded<Value>(path: string, work: (context: CallContext) => Promise<Value>): Promise<Value> {
    const { answer: result } = await this.#retried(path, async () =>
      onceForStep(this.#deps, await this.#now(), this.#claim(path), async ({ record, ...context }) => {
        await this.#calling()
        const result = await work(context)
        await record.completed(countedUsage(0, 0), { answer: result })
        return { answer: result, cost: 0n }
      }),
    )
    return result
  }

  /**
   * Returns the context with the caller's current rules, which may have changed since the step before.
   * @throws {KisError} the run may not continue.
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
      this.#inFlight += 1
      this.#begun += 1
      try {
        const value = await call()
        this.#characters += toJson(value).length
        this.#waits.delete(path)
        return value
      } catch (error) {
        this.#waits.set(path, this.#waitAfter(error, this.#waits.get(path)))
      } finally {
        this.#inFlight -= 1
      }
    }
  }

  /**
   * Returns the wait before the next attempt.
   * @throws the error, when a retry cannot help.
   */
  #waitAfter(error: unknown, { tries, waitMs }: Wait = { tries: 1, waitMs: FIRST_WAIT_MS, dueMs: 0 }): Wait {
    if (!(error instanceof KisError) || !error.shouldRetry) throw error
    const isPassing = this.#waitedFor.includes(error.code)
    if (!isPassing && (!this.#passing.includes(error.code) || tries >= MAX_TRIES)) throw error
    const jittered = waitMs * (0.5 + Math.random() / 2)
    const now = this.#deps.clock.now().getTime()
    // Not `??`: a time that is no number must not end the wait.
    const leastMs = error.retryAfterMs || 0
    return {
      tries: isPassing ? tries : tries + 1,
      waitMs: Math.min(waitMs * 2, LONGEST_WAIT_MS),
      dueMs: now + Math.min(LONGEST_WAIT_MS, Math.max(leastMs, jittered)),
    }
  }

  /**
   * Waits until the call may be made again.
   * @throws the reason of the signal, when it is aborted.
   */
  async #wait(path: string): Promise<void> {
    const { clock } = this.#deps
    const { signal } = this.#context
    const leftMs = () => (this.#waits.get(path)?.dueMs ?? 0) - clock.now().getTime()
    const begun = this.#begun
    if (leftMs() > STILL_MS) {
      await clock.sleep(STILL_MS, signal)
      if (this.#inFlight === 0 && this.#begun === begun) this.#putOff(this.#untilNext())
    }
    const restMs = leftMs()
    if (restMs > 0) await clock.sleep(restMs, signal)
  }

  #untilNext(): PutOff {
    const dueMs = Math.min(...[...this.#waits.values()].map((wait) => wait.dueMs))
    return new PutOff(new Date(dueMs), Object.fromEntries(this.#waits))
  }
}
