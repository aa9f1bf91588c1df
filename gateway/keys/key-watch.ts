import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import { type Authenticator, isRefusal } from './authenticate.ts'

/**
 * How often keys with running operations are checked. Together with the time for which an accepted key is trusted, all
 * operations of a revoked key end within 5 s.
 */
const POLL_MS = 1_000

/** A long-running operation of a key. */
export interface Watched {
  /** Returns the reason why this caller may no longer run the operation; undefined if it may. */
  judge(caller: Principal): Error | undefined
  end(why: Error): void
}

/** Ends running operations of keys that are revoked, expire or lose a needed scope, or whose organization is suspended. */
export class KeyWatch implements AsyncDisposable {
  readonly #authenticator: Authenticator
  readonly #clock: Clock
  readonly #ids: IdSource
  /** Running operations by the key as the client sent it. */
  readonly #watched = new Map<string, Set<Watched>>()
  readonly #stopping = new AbortController()
  readonly #polling: Promise<void>

  constructor(authenticator: Authenticator, clock: Clock, ids: IdSource) {
    this.#authenticator = authenticator
    this.#clock = clock
    this.#ids = ids
    this.#polling = this.#poll()
  }

  /** Starts to watch. Call the returned function when the operation is over. */
  watch(credentials: string, watched: Watched): () => void {
    const ofKey = this.#watched.get(credentials) ?? new Set()
    this.#watched.set(credentials, ofKey.add(watched))
    return () => {
      ofKey.delete(watched)
      if (ofKey.size === 0 && this.#watched.get(credentials) === ofKey) this.#watched.delete(credentials)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    await this.#polling
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#clock.sleep(POLL_MS, signal).catch(() => undefined)
      for (const [credentials, ofKey] of this.#watched) void this.#check(credentials, ofKey)
    }
  }

  async #check(credentials: string, ofKey: ReadonlySet<Watched>): Promise<void> {
    try {
      const caller = await this.#authenticator.getPrincipal(credentials, this.#ids('req'))
      for (const watched of ofKey) {
        const why = watched.judge(caller)
        if (why) watched.end(why)
      }
    } catch (error) {
      // When billing does not respond, the operation continues. The key's next operation is refused anyway.
      if (isRefusal(error)) for (const watched of ofKey) watched.end(error)
    }
  }
}
