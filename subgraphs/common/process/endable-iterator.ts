/**
 * An iterator whose `return()` ends it at once, even while a `next()` is pending, which then gives `done`. An async
 * generator cannot do this: its `return()` waits for the pending `next()`, so an idle upstream would stay open and a
 * model would go on billing.
 *
 * `pull` makes the next step; its rejection rejects `next()` and ends the iterator. `end` is called once, however the
 * iterator ends. An abort of the signal acts as `return()`.
 */
export function endableIterator<T>(
  pull: () => Promise<IteratorResult<T, undefined>>,
  end: () => void | Promise<void>,
  signal?: AbortSignal,
): AsyncIterableIterator<T, undefined> {
  const done = { done: true, value: undefined } as const
  const waiting = new Set<(result: IteratorResult<T, undefined>) => void>()
  let ended: Promise<void> | undefined

  const finish = () => {
    if (ended) return ended
    signal?.removeEventListener('abort', finish)
    ended = Promise.resolve(end()).catch(() => undefined)
    for (const resolve of waiting) resolve(done)
    waiting.clear()
    return ended
  }
  signal?.addEventListener('abort', finish, { once: true })

  const next = () =>
    new Promise<IteratorResult<T, undefined>>((resolve, reject) => {
      if (signal?.aborted) finish()
      if (ended) return resolve(done)
      waiting.add(resolve)
      pull().then(
        (result) => {
          waiting.delete(resolve)
          if (result.done) finish()
          resolve(result)
        },
        (error) => {
          waiting.delete(resolve)
          const wasOver = ended !== undefined
          finish()
          if (wasOver) resolve(done)
          else reject(error)
        },
      )
    })
  const stop = async () => {
    await finish()
    return done
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    next,
    return: stop,
    throw: stop,
  }
}

/**
 * An endable iterator over the events that `open` gives at the first `next()`. `return()` while it opens ends the events
 * as soon as they exist. Once they do, each `next()` is theirs, so they must be endable, and end with the same signal.
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
