import { KisError, ServiceUnavailable } from '../errors.ts'
import type { Clock } from './clock.ts'
import { untilAborted } from './until-aborted.ts'

/**
 * A store cannot be used now, but a later attempt may succeed: it is absent, too old, read-only, full, created for
 * another purpose, or this user has no access. After any other error, waiting does not help.
 */
export class Unfit extends Error {
  /** All problems as sentences for the operator, without secrets. */
  readonly problems: readonly string[]
  /** The part that has the problems, if it is not the part that was to be opened: `billing`. */
  readonly part: string | undefined

  constructor(problems: readonly string[], { part, ...options }: ErrorOptions & { readonly part?: string } = {}) {
    super(problems.join('\n'), options)
    this.name = 'Unfit'
    this.problems = problems
    this.part = part
  }
}

/** A store that can be opened, or read in part, but does not contain what was written. Waiting does not help. */
export class Corrupted extends Error {
  /** `message`: what is corrupted, how that shows, and what to do. */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Corrupted'
  }
}

/** Pause after the first failed attempt. Each further pause is twice as long, up to the longest. */
const FIRST_WAIT_MS = 200
/** Longest pause, and so the longest time until a recovered store is noticed. */
const LAST_WAIT_MS = 5_000

/** A port whose methods all return promises, so that a substitute can represent it until it exists. */
type Port<P> = { readonly [K in keyof P]: (...args: never[]) => PromiseLike<unknown> }

type Methods = Record<PropertyKey, (...args: unknown[]) => PromiseLike<unknown>>

/** What to open, and when to try. */
export interface OpeningOptions<T> {
  /** The name for operators and callers: `document store`. */
  readonly part: string
  /**
   * Makes one attempt, which leaves nothing open when it fails.
   * @throws {Unfit} or `service_unavailable`: there will be another attempt. Any other error ends the start.
   */
  open(): Promise<T>
  /** The attempts start when this promise resolves. Default: at once. */
  readonly after?: Promise<unknown>
  readonly clock: Clock
  /** Ends the attempts. A running attempt is abandoned, and what it still opens is closed. */
  readonly signal: AbortSignal
}

/**
 * Opens something in the background, and retries until it succeeds: a process may start before its dependencies.
 * Disposal closes what was opened.
 */
export class Opening<T> implements AsyncDisposable {
  /** Rejects when waiting cannot help, or with the reason of the signal. */
  readonly opened: Promise<T>
  readonly #part: string
  readonly #firstTry = Promise.withResolvers<void>()
  /** All problems, each with its part. */
  #problems: readonly string[] = []
  #value: { readonly it: T } | undefined

  constructor(options: OpeningOptions<T>) {
    const { part, after, signal } = options
    this.#part = part
    if (!after) this.#problems = [`${part}: no response yet`]
    this.opened = untilAborted(this.#run(options), signal)
    // Callers that wait get the error. If none waits, the error must not end the process.
    this.opened.catch(() => undefined)
  }

  /**
   * Returns a substitute for what `pick` takes from the value. Until the value is open, each method rejects with
   * `service_unavailable`. All methods of the port must return promises.
   */
  late<P extends Port<P>>(pick: (value: T) => P): P {
    let target: Methods | undefined
    // The proxy has a method of every name, so it has each method of `P`.
    return new Proxy<Methods>(
      {},
      {
        get: (methods, name) => {
          // JavaScript treats any object with a `then` as a promise.
          if (name === 'then') return undefined
          methods[name] ??= (...args) => {
            // `Port<P>` allows only methods that return promises. Their arguments are passed on unchanged.
            target ??= this.#value && (pick(this.#value.it) as unknown as Methods)
            return target ? target[name]!(...args) : Promise.reject(new ServiceUnavailable(`The ${this.#part}`))
          }
          return methods[name]
        },
      },
    ) as unknown as P
  }

  /**
   * Returns why the part cannot serve: until it is open, the problems of the last attempt; then the failure of its
   * `ping`, if it has one. Waits for the first attempt, at most until the signal aborts.
   */
  async problems(signal: AbortSignal): Promise<readonly string[]> {
    if (!this.#value && this.#problems.length > 0) await untilAborted(this.#firstTry.promise, signal).catch(() => undefined)
    if (!this.#value) return this.#problems
    return (await findSilence(this.#value.it, signal)).map((problem) => `${this.#part}: ${problem}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await close(this.#value?.it)
  }

  async #run({ part, open, after, clock, signal }: OpeningOptions<T>): Promise<T> {
    await after
    if (after) this.#problems = [`${part}: no response yet`]
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LAST_WAIT_MS, 2 * waitMs)) {
      signal.throwIfAborted()
      try {
        const it = await open()
        if (signal.aborted) await close(it)
        signal.throwIfAborted()
        this.#value = { it }
        return it
      } catch (error) {
        const problemPart = error instanceof Unfit ? (error.part ?? part) : part
        this.#problems = temporaryProblems(error).map((problem) => `${problemPart}: ${problem}`)
        if (this.#problems.length === 0) throw error
      } finally {
        this.#firstTry.resolve()
      }
      // Half of the pause is random, so that processes that wait for the same server do not come at the same time.
      await clock.sleep(waitMs * (0.5 + Math.random() / 2), signal)
    }
  }
}

/** Returns the problems that a later attempt may find solved, as sentences; empty: the error is permanent. */
function temporaryProblems(error: unknown): readonly string[] {
  if (error instanceof Unfit) return error.problems
  if (!(error instanceof KisError && error.code === 'service_unavailable')) return []
  return [error.cause instanceof Error ? error.cause.message : error.message]
}

async function findSilence(value: unknown, signal: AbortSignal): Promise<readonly string[]> {
  const { ping } = Object(value) as { ping?(signal: AbortSignal): Promise<unknown> }
  try {
    await ping?.call(value, signal)
    return []
  } catch (error) {
    if (error instanceof Unfit) return error.problems
    return [error instanceof Corrupted ? `it is corrupted: ${error.message}` : 'it does not respond']
  }
}

async function close(value: unknown): Promise<void> {
  await (Object(value) as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
}
