type Step<T> = IteratorResult<T, undefined>

const DONE = { done: true, value: undefined } as const

/**
 * An iterator whose `return()` ends it at once, even while a `next()` is pending, which then gives `done`. An async
 * generator cannot do this: its `return()` waits for the pending `next()`, so an idle upstream would stay open and a
 * model would go on billing.
 *
 * `pull` makes the next step; its rejection rejects `next()` and ends the iterator. `end` is called once, however the
 * iterator ends. An abort of the signal acts as `return()`.
 */
export function endableIterator<T>(
  pull: () => Promise<Step<T>>,
  end: () => void | Promise<void>,
  signal?: AbortSignal,
): AsyncIterableIterator<T, undefined> {
  return new EndableIterator(pull, end, signal)
}

/** A stream of tokens has thousands of steps, so what each of them needs is made once. */
class EndableIterator<T> implements AsyncIterableIterator<T, undefined> {
  readonly #pull: () => Promise<Step<T>>
  readonly #end: () => void | Promise<void>
  readonly #signal: AbortSignal | undefined
  #pending: Promise<Step<T>> | undefined
  #resolve: (step: Step<T>) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  #ended: Promise<void> | undefined

  constructor(pull: () => Promise<Step<T>>, end: () => void | Promise<void>, signal: AbortSignal | undefined) {
    this.#pull = pull
    this.#end = end
    this.#signal = signal
    signal?.addEventListener('abort', this.#finish, { once: true })
  }

  [Symbol.asyncIterator]() {
    return this
  }

  /** Steps are made one after the other, even if they are asked for at once. */
  next(): Promise<Step<T>> {
    if (this.#signal?.aborted) this.#finish()
    if (this.#ended) return Promise.resolve(DONE)
    if (this.#pending) return this.#pending.then(this.#again, this.#again)
    const pending = new Promise(this.#start)
    this.#pending = pending
    try {
      this.#pull().then(this.#gave, this.#failed)
    } catch (error) {
      this.#failed(error)
    }
    return pending
  }

  readonly return = async (): Promise<Step<T>> => {
    await this.#finish()
    return DONE
  }

  readonly throw = this.return

  readonly #again = () => this.next()

  readonly #start = (resolve: (step: Step<T>) => void, reject: (error: unknown) => void) => {
    this.#resolve = resolve
    this.#reject = reject
  }

  readonly #gave = (step: Step<T>) => {
    if (this.#ended) return
    this.#pending = undefined
    if (step.done) this.#finish()
    this.#resolve(step)
  }

  readonly #failed = (error: unknown) => {
    if (this.#ended) return
    this.#pending = undefined
    this.#finish()
    this.#reject(error)
  }

  readonly #finish = () => {
    if (this.#ended) return this.#ended
    this.#signal?.removeEventListener('abort', this.#finish)
    this.#ended = Promise.resolve(this.#end()).catch(() => undefined)
    if (this.#pending) this.#resolve(DONE)
    return this.#ended
  }
}

/**
 * The steps of an endable iterator, each changed by `change`; if that throws, `next()` rejects, and the source stays open.
 * `caught` makes a step of a rejection of the source, which is passed on otherwise. It is endable, too: `return()` does
 * not wait for what `change` waits for. A step costs one promise, if `change` answers at once.
 */
export function changedSteps<T, U>(
  source: AsyncIterator<T, undefined>,
  change: (step: Step<T>) => Step<U> | Promise<Step<U>>,
  caught?: (error: unknown) => Step<U> | Promise<Step<U>>,
): AsyncIterableIterator<U, undefined> {
  let endPending = () => {}
  const changed = (step: Step<T>) => {
    const later = change(step)
    if (!(later instanceof Promise)) return later
    return new Promise<Step<U>>((resolve, reject) => {
      endPending = () => resolve(DONE)
      later.then(resolve, reject)
    })
  }
  const end = async () => {
    endPending()
    await source.return?.()
    return DONE
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: () => source.next().then(changed, caught),
    return: end,
    throw: end,
  }
}

/**
 * An endable iterator over the events that `open` gives at the first `next()`. `return()` while it opens ends the events
 * as soon as they exist. Once they do, each `next()` is theirs, so they must be endable.
 */
export function openedLater<T>(
  open: () => Promise<AsyncIterableIterator<T, undefined>>,
  signal: AbortSignal,
): AsyncIterableIterator<T, undefined> {
  let events: AsyncIterableIterator<T, undefined> | undefined
  let opening: Promise<AsyncIterableIterator<T, undefined>> | undefined
  let isOver = false
  const first = endableIterator<T>(
    async () => {
      opening ??= open()
      events ??= await opening
      if (!isOver) return events.next()
      await events.return?.()
      return { done: true, value: undefined }
    },
    async () => {
      isOver = true
      await events?.return?.()
    },
    signal,
  )
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next: () => (events && !isOver ? events.next() : first.next()),
    return: first.return!,
    throw: first.throw!,
  }
}
