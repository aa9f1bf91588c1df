import type { Principal } from '../subgraphs/common/identity/principal.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'
import type { IdSource } from '../subgraphs/common/process/ids.ts'
import { type Authenticator, isRefusal } from './authenticate.ts'

/** How often keys with something under way are judged; together with the time for which an answer about a key is trusted, this ends everything of a revoked key within 5 s. */
const LOOK_MS = 1_000

/** What goes on for long for a key. */
export interface Watched {
  /** What forbids the key, as it is now, to go on with it; undefined: nothing. */
  judge(caller: Principal): Error | undefined
  end(why: Error): void
}

/** Ends what is under way for keys that are revoked, run out or may not ask for it any more. */
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
    this.#looking = this.#keepLooking()
  }

  /** Gives a function; call it when the operation is over. */
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

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#clock.sleep(LOOK_MS, signal).catch(() => undefined)
      for (const [credentials, ofKey] of this.#underWay) void this.#look(credentials, ofKey)
    }
  }

  async #look(credentials: string, ofKey: ReadonlySet<Watched>): Promise<void> {
    try {
      const caller = await this.#authenticator.principalOf(credentials, this.#ids('req'))
      for (const watched of ofKey) {
        const why = watched.judge(caller)
        if (why) watched.end(why)
      }
    } catch (error) {
      // When nobody can say, it goes on: the key's next operation is refused anyway.
      if (isRefusal(error)) for (const watched of ofKey) watched.end(error as Error)
    }
  }
}
