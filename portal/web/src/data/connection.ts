import { useSyncExternalStore } from 'react'

/** Between two looks whether the service answers again. */
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 15_000

type State = 'connected' | 'lost'

/** Whether the service answers. `lose` begins to look for it until it does, and then tells the listeners of `onReturn`. */
class Connection {
  state: State = 'connected'
  readonly #watchers = new Set<() => void>()
  readonly #returns = new Set<() => void>()
  #wake = () => {}

  lose(): void {
    if (this.state === 'lost') return
    this.#set('lost')
    void this.#look()
  }

  /** Looks now, such as when the network is back. */
  hurry(): void {
    this.#wake()
  }

  restore(): void {
    if (this.state === 'connected') return
    this.#set('connected')
    for (const listen of this.#returns) listen()
  }

  onReturn(listen: () => void): () => void {
    this.#returns.add(listen)
    return () => this.#returns.delete(listen)
  }

  /** Resolves when the service answers: at once where it can be reached. */
  async untilReached(): Promise<void> {
    if (this.state === 'lost' || !(await answers())) await this.untilReturn()
  }

  /** Resolves when the service answers again, which it is asked until it does. */
  untilReturn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const forget = this.onReturn(() => {
      forget()
      resolve()
    })
    this.lose()
    return promise
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  #set(state: State): void {
    this.state = state
    for (const watcher of this.#watchers) watcher()
  }

  async #look(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; this.state === 'lost'; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
      await this.#sleep(wait * (0.75 + Math.random() / 2))
      if (await answers()) this.restore()
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

function answers(): Promise<boolean> {
  return fetch('/healthz', { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  )
}

export const connection = new Connection()
window.addEventListener('online', () => connection.hurry())

export function useConnection(): State {
  return useSyncExternalStore(connection.watch, () => connection.state)
}
