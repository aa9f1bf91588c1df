import { useSyncExternalStore } from 'react'

/** Between two looks whether the service answers again. */
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 15_000
/** A broken network may say nothing at all. */
const RESPONSE_TIMEOUT_MS = 5_000
/** An answer says for so long that the service can be reached. */
const FRESH_MS = 10_000

type State = 'connected' | 'lost'

/** Whether the service answers. `lose` begins to look for it until it does, and then tells the listeners of `onReturn`. */
class Connection {
  state: State = 'connected'
  readonly #watchers = new Set<() => void>()
  readonly #returns = new Set<() => void>()
  #wake = () => {}
  /** On the clock of the page, which has just come from the service. */
  #respondedAt = 0

  lose(): void {
    if (this.state === 'lost') return
    this.#set('lost')
    void this.#poll()
  }

  /** Looks now, such as when the network is back. */
  hurry(): void {
    this.#wake()
  }

  onReturn(listen: () => void): () => void {
    this.#returns.add(listen)
    return () => this.#returns.delete(listen)
  }

  /** Resolves when the service answers: at once where it can be reached. */
  async untilReached(): Promise<void> {
    if (this.state === 'connected' && navigator.onLine && performance.now() - this.#respondedAt < FRESH_MS) return
    if (this.state === 'connected' && (await isReachable())) this.#respondedAt = performance.now()
    else await this.untilReturn()
  }

  /** Resolves when the service answers again, which it is asked until it does. */
  untilReturn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unsubscribe = this.onReturn(() => {
      unsubscribe()
      resolve()
    })
    this.lose()
    return promise
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  #restore(): void {
    if (this.state === 'connected') return
    this.#set('connected')
    for (const listen of this.#returns) listen()
  }

  #set(state: State): void {
    this.state = state
    for (const watcher of this.#watchers) watcher()
  }

  async #poll(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; this.state === 'lost'; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
      await this.#sleep(wait * (0.75 + Math.random() / 2))
      if (await isReachable()) this.#restore()
    }
  }

  #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    this.#wake = () => {
      clearTimeout(timer)
      resolve()
    }
    return promise
  }
}

function isReachable(): Promise<boolean> {
  return fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )
}

export const connection = new Connection()
window.addEventListener('online', () => connection.hurry())

export function useConnection(): State {
  return useSyncExternalStore(connection.watch, () => connection.state)
}
