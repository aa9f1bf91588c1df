import { LRUCache } from 'lru-cache'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { subscriberOf } from '../../subgraphs/common/sessions/client-address.ts'

/**
 * A refused attempt is answered after a multiple of this. So its time says nothing about why it was refused, and one
 * address makes at most 8 wrong attempts a second. Accepted ones are answered at once.
 */
export const REFUSED_AFTER_MS = 500
/** Attempts of one address that run at once. */
const MAX_AT_ONCE = 4
/** Attempts of one address that wait for these. A right key among them is accepted within 3 s. */
const MAX_WAITING = 20
/** Addresses with an attempt under way: 2 MB. */
const MAX_ADDRESSES = 10_000
/**
 * Addresses of one neighbourhood, 16 bits of IPv4 and 32 of IPv6, with an attempt under way. Whoever has many addresses
 * has them side by side, and so takes the places of neighbours, not those of all.
 */
const MAX_OF_NEIGHBOURHOOD = 500
/** Addresses that have signed in. Their attempts are never refused for what others do: 1 MB. */
const MAX_KNOWN = 10_000
const RETRY_MS = 3_000

interface Place {
  running: number
  readonly waiting: (() => void)[]
}

/**
 * Bounds how fast one address can try keys. Nobody is locked out: an address only waits for its own attempts, and no
 * attempt counts against the key that was tried.
 */
export class SignInAttempts {
  readonly #clock: Pick<Clock, 'sleep'>
  readonly #now: () => number
  readonly #places = new Map<string, Place>()
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN })
  /** The number of places of each neighbourhood. */
  readonly #taken = new Map<string, number>()

  constructor(clock: Pick<Clock, 'sleep'>, now = () => performance.now()) {
    this.#clock = clock
    this.#now = now
  }

  /**
   * @throws {KisError} `rate_limit_exceeded`: too many attempts of the address wait
   * @throws {ServiceUnavailable} attempts of too many addresses are under way
   */
  async attempt<T>(address: string, signIn: () => Promise<T>): Promise<T> {
    const name = subscriberOf(address)
    const place = this.#places.get(name) ?? { running: 0, waiting: [] }
    if (place.waiting.length >= MAX_WAITING)
      throw new KisError('rate_limit_exceeded', 'Too many attempts to sign in from your address. Wait some seconds, then try again.', {
        retryAfterMs: RETRY_MS,
      })
    const neighbourhood = neighbourhoodOf(name)
    if (!this.#places.has(name)) {
      const taken = this.#taken.get(neighbourhood) ?? 0
      const isFull = this.#places.size >= MAX_ADDRESSES || taken >= MAX_OF_NEIGHBOURHOOD
      if (isFull && !this.#known.get(name)) throw new ServiceUnavailable('Signing in')
      this.#places.set(name, place)
      this.#taken.set(neighbourhood, taken + 1)
    }
    if (place.running >= MAX_AT_ONCE) await new Promise<void>((resolve) => place.waiting.push(resolve))
    else place.running += 1
    const startedAt = this.#now()
    try {
      const answer = await signIn()
      this.#known.set(name, true)
      return answer
    } catch (error) {
      await this.#clock.sleep(REFUSED_AFTER_MS - ((this.#now() - startedAt) % REFUSED_AFTER_MS))
      throw error
    } finally {
      // The next one takes over the place.
      const next = place.waiting.shift()
      if (next) next()
      else if (--place.running === 0) this.#leave(name, neighbourhood)
    }
  }

  #leave(name: string, neighbourhood: string): void {
    this.#places.delete(name)
    const taken = this.#taken.get(neighbourhood)! - 1
    if (taken > 0) this.#taken.set(neighbourhood, taken)
    else this.#taken.delete(neighbourhood)
  }
}

/** The first half of an address of IPv4, or of a network of IPv6. */
function neighbourhoodOf(name: string): string {
  return name
    .split(/(?=[.:])/)
    .slice(0, 2)
    .join('')
}
