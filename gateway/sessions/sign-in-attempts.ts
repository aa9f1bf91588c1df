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

interface Slot {
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
  readonly #slots = new Map<string, Slot>()
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN })
  /** The number of places of each neighbourhood. */
  readonly #slotCounts = new Map<string, number>()

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
    const slot = this.#slots.get(name) ?? { running: 0, waiting: [] }
    if (slot.waiting.length >= MAX_WAITING)
      throw new KisError('rate_limit_exceeded', 'Too many attempts to sign in from your address. Wait some seconds, then try again.', {
        retryAfterMs: RETRY_MS,
      })
    const neighbourhood = neighbourhoodOf(name)
    if (!this.#slots.has(name)) {
      const count = this.#slotCounts.get(neighbourhood) ?? 0
      const isFull = this.#slots.size >= MAX_ADDRESSES || count >= MAX_OF_NEIGHBOURHOOD
      if (isFull && !this.#known.get(name)) throw new ServiceUnavailable('Signing in')
      this.#slots.set(name, slot)
      this.#slotCounts.set(neighbourhood, count + 1)
    }
    if (slot.running >= MAX_AT_ONCE) await new Promise<void>((resolve) => slot.waiting.push(resolve))
    else slot.running += 1
    const startedAt = this.#now()
    try {
      const result = await signIn()
      this.#known.set(name, true)
      return result
    } catch (error) {
      await this.#clock.sleep(REFUSED_AFTER_MS - ((this.#now() - startedAt) % REFUSED_AFTER_MS))
      throw error
    } finally {
      // The next one takes over the place.
      const next = slot.waiting.shift()
      if (next) next()
      else if (--slot.running === 0) this.#release(name, neighbourhood)
    }
  }

  #release(name: string, neighbourhood: string): void {
    this.#slots.delete(name)
    const count = this.#slotCounts.get(neighbourhood)! - 1
    if (count > 0) this.#slotCounts.set(neighbourhood, count)
    else this.#slotCounts.delete(neighbourhood)
  }
}

/** The first half of an address of IPv4, or of a network of IPv6. */
function neighbourhoodOf(name: string): string {
  return name
    .split(/(?=[.:])/)
    .slice(0, 2)
    .join('')
}
