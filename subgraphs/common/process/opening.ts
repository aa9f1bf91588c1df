import { KisError, ServiceUnavailable } from '../errors.ts'
import type { Clock } from './clock.ts'

/**
 * A store as it is cannot be used, and a later try may find it mended: absent, too old, read-only, full, made for something else, closed to
 * this user. Any other error of an opening is one that no waiting mends.
 */
export class Unfit extends Error {
  /** Sentences for the operator, all that is wrong; no secret is in them. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.name = 'Unfit'
    this.problems = problems
  }
}

/** A store that can be opened, or read in part, and is not what was written. No waiting mends it. */
export class Damaged extends Error {
  /** `message`: what is damaged, how it shows, and what to do. */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'Damaged'
  }
}

/** The wait after the first try that failed; each further one is twice as long, up to the last. */
const FIRST_WAIT_MS = 200
/** So long may a store be back before it is noticed. */
const LAST_WAIT_MS = 5_000

/** The methods of a port all answer later, so that something can stand for it that is not there yet. */
type Port<P> = { readonly [K in keyof P]: (...args: never[]) => PromiseLike<unknown> }

type Methods = Record<PropertyKey, (...args: unknown[]) => PromiseLike<unknown>>

export interface OpeningOptions<T> {
  /** What operator and callers know it by: `document store`. */
  readonly part: string
  /** One try, which leaves nothing open when it fails. @throws {Unfit} or `service_unavailable`: it is tried again. Anything else ends the start. */
  open(): Promise<T>
  /** The tries begin when this resolves. Default: at once. */
  readonly after?: Promise<unknown>
  readonly clock: Clock
  /** Ends the tries. One that is under way is left to itself, and what it may still open is closed. */
  readonly signal: AbortSignal
}

/**
 * Something that is opened in the background, and tried again by itself until it goes well: a process may start before what it needs.
 * Disposing it closes what was opened.
 */
export class Opening<T> implements AsyncDisposable {
  /** Rejects with what no waiting mends, or with the reason of the signal. */
  readonly opened: Promise<T>
  readonly #part: string
  readonly #firstTry = Promise.withResolvers<void>()
  #problems: readonly string[] = []
  #value: { readonly it: T } | undefined

  constructor(options: OpeningOptions<T>) {
    const { part, after, signal } = options
    this.#part = part
    if (!after) this.#problems = ['no answer yet']
    const { promise: ended, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    this.opened = Promise.race([this.#run(options), ended])
    // Whoever waits for it is told; nobody has to.
    this.opened.catch(() => undefined)
  }

  /**
   * Stands for what `pick` takes of the value. Until that is open, each method rejects with `service_unavailable`.
   * A port with anything but methods that give promises does not fit.
   */
  late<P extends Port<P>>(pick: (value: T) => P): P {
    let target: Methods | undefined
    // The proxy answers to every name, so it has each method of `P`.
    return new Proxy<Methods>(
      {},
      {
        get: (methods, name) => {
          // What has a `then` would be taken for a promise.
          if (name === 'then') return undefined
          methods[name] ??= (...args) => {
            // `Port<P>` allows nothing but methods that give promises; their arguments are passed on unseen.
            target ??= this.#value && (pick(this.#value.it) as unknown as Methods)
            return target ? target[name]!(...args) : Promise.reject(new ServiceUnavailable(`The ${this.#part}`))
          }
          return methods[name]
        },
      },
    ) as unknown as P
  }

  /**
   * What keeps the part from serving: while it is not open, what the last try found; then, that it does not answer its `ping`, if it has one.
   * Waits for the first try, at most until the signal aborts.
   */
  async problems(signal: AbortSignal): Promise<readonly string[]> {
    if (!this.#value && this.#problems.length > 0) await Promise.race([this.#firstTry.promise, aborted(signal)])
    const found = this.#value ? await silenceOf(this.#value.it, signal) : this.#problems
    return found.map((problem) => `${this.#part}: ${problem}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await close(this.#value?.it)
  }

  async #run({ open, after, clock, signal }: OpeningOptions<T>): Promise<T> {
    await after
    if (after) this.#problems = ['no answer yet']
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(LAST_WAIT_MS, 2 * waitMs)) {
      signal.throwIfAborted()
      try {
        const it = await open()
        if (signal.aborted) await close(it)
        signal.throwIfAborted()
        this.#value = { it }
        return it
      } catch (error) {
        this.#problems = mendable(error)
        if (this.#problems.length === 0) throw error
      } finally {
        this.#firstTry.resolve()
      }
      // Half of it at random, so that processes that wait for the same server do not come together.
      await clock.sleep(waitMs * (0.5 + Math.random() / 2), signal)
    }
  }
}

/** In sentences, what a later try may find mended; none when the error is of another kind. */
function mendable(error: unknown): readonly string[] {
  if (error instanceof Unfit) return error.problems
  if (!(error instanceof KisError && error.code === 'service_unavailable')) return []
  return [error.cause instanceof Error ? error.cause.message : error.message]
}

async function silenceOf(value: unknown, signal: AbortSignal): Promise<readonly string[]> {
  const { ping } = Object(value) as { ping?(signal: AbortSignal): Promise<unknown> }
  try {
    await ping?.call(value, signal)
    return []
  } catch (error) {
    if (error instanceof Unfit) return error.problems
    return [error instanceof Damaged ? `it is damaged: ${error.message}` : 'it does not answer']
  }
}

async function close(value: unknown): Promise<void> {
  await (Object(value) as Partial<AsyncDisposable>)[Symbol.asyncDispose]?.()
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
