import { endableIterator } from './endable-iterator.ts'

/** How soon a follower hears of what another process has written. */
const POLL_MS = 500

/**
 * What `read` gives, again and again, without end; it gives what came since it was last asked, in order. While there is nothing it is asked again
 * when `hear` wakes, or after half a second. `hear` gives what ends the hearing.
 */
export function following<T>(
  read: () => Promise<readonly T[]>,
  hear: (wake: () => void) => () => void,
): AsyncIterableIterator<T, undefined> {
  let unread: T[] = []
  let wake = () => {}
  let isWoken = false
  let isEnded = false
  const notify = () => {
    isWoken = true
    wake()
  }
  const stop = hear(notify)
  return endableIterator<T>(
    async () => {
      while (unread.length === 0) {
        isWoken = false
        unread = [...(await read())]
        if (isEnded) return { done: true, value: undefined }
        if (unread.length > 0 || isWoken) continue
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, POLL_MS)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      return { done: false, value: unread.shift()! }
    },
    () => {
      isEnded = true
      stop()
      notify()
    },
  )
}
