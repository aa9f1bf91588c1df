import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import { type Authenticator, isRefusal } from './authenticate.ts'

/**
 * How often keys with running operations are checked. Together with the time for which an accepted key is trusted,
 * everything of a revoked key ends within 5 s.
 */
const POLL_MS = 1_000

/** A long-running operation of a key. */
export interface Watched {
  /** The reason why this caller may no longer run it; undefined if it may. */
  judge(caller: Principal): Error | undefined
  end(why: Error): void
}

/** Ends running operations of keys that are revoked, expire or lose a needed scope, or whose organization is suspended. */
export class KeyWatch implements AsyncDisposable {
  readonly #authenticator: Authenticator
  readonly #clock: Clock
  readonly #ids: IdSource
  /** By the key as the client sent it. */
  readonly #underWay = new Map<string, Set<Watched>>()
  readonly #stopping = new AbortController()
  readonly #looking: Promise<void>

  constructor(authenticator: Authenticator, clock: Clock, ids: IdSource) {
    this.#authenticator = authenticator
    this.#clock = clock
    this.#ids = ids
    this.#looking = this.#poll()
  }

  /** Starts to watch. Call the returned function when the operation is over. */
  watch(credentials: string, watched: Watched): () => void {
    const ofKey = this.#underWay.get(credentials) ?? new Set()
    this.#underWay.set(credentials, ofKey.add(watched))
    return () => {
      ofKey.delete(watched)
      if (ofKey.size === 0 && this.#underWay.get(credentials) === ofKey) this.#underWay.delete(credentials)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    await this.#looking
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#clock.sleep(POLL_MS, signal).catch(() => undefined)
      for (const [credentials, ofKey] of this.#underWay) void this.#check(credentials, ofKey)
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
      // When billing does not answer, the operation goes on. The key's next operation is refused anyway.
      if (isRefusal(error)) for (const watched of ofKey) watched.end(error)
    }
  }
}
