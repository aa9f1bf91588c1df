import { endableIterator } from '../../../common/process/endable-iterator.ts'

/**
 * Hands an event to the reader. Resolves when the reader asks for the next one, so that the work is at most one event
 * ahead.
 * @throws the reason of the signal, when it is aborted.
 */
type Push<Event> = (event: Event, signal: AbortSignal) => Promise<void>

interface Step<Event> {
  readonly value: Event
  readonly isLast: boolean
}

/**
 * Streams the events that `work` gives while it runs, and its result as the last event. The work starts with the first
 * `next()`. If it fails, the pending `next()` rejects. `return()` and an abort of `signal` abort the work's own signal.
 */
export function streamEvents<Event>(
  signal: AbortSignal,
  work: (push: Push<Event>, signal: AbortSignal) => Promise<Event>,
): AsyncIterableIterator<Event, undefined> {
  const stop = new AbortController()
  let next = Promise.withResolvers<Step<Event>>()
  let resume = () => {}
  let end: Promise<Step<Event>> | undefined
  let hasEnded = false
  let isOver = false

  const push: Push<Event> = (value, until) =>
    new Promise((resolve, reject) => {
      if (until.aborted) return reject(until.reason)
      const onAbort = () => reject(until.reason)
      until.addEventListener('abort', onAbort, { once: true })
      resume = () => {
        until.removeEventListener('abort', onAbort)
        resolve()
      }
      next.resolve({ value, isLast: false })
    })
  const start = () => {
    const onEnd = () => {
      hasEnded = true
      next.resolve(end!)
    }
    end = work(push, stop.signal).then((value) => ({ value, isLast: true }))
    end.then(onEnd, onEnd)
  }
  const pull = async (): Promise<IteratorResult<Event, undefined>> => {
    if (isOver) return { done: true, value: undefined }
    next = Promise.withResolvers()
    if (!end) start()
    else if (hasEnded) next.resolve(end)
    else resume()
    const { value, isLast } = await next.promise
    isOver = isLast
    return { done: false, value }
  }
  return endableIterator(pull, () => stop.abort(), signal)
}
