import { isIPv6 } from 'node:net'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'

/**
 * A refused attempt is answered after a multiple of this. So its time says nothing about why it was refused, and one
 * address makes at most 8 wrong attempts a second. Accepted ones are answered at once.
 */
export const REFUSED_AFTER_MS = 500
/** Attempts of one address that run at once. */
const MAX_AT_ONCE = 4
/** Attempts of one address that wait for these. A right key among them is accepted within 3 s. */
const MAX_WAITING = 20
/** Addresses with an attempt under way. */
const MAX_ADDRESSES = 1_000
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

  constructor(clock: Pick<Clock, 'sleep'>, now = () => performance.now()) {
    this.#clock = clock
    this.#now = now
  }

  /**
   * @throws {KisError} `rate_limit_exceeded`: too many attempts of the address wait
   * @throws {ServiceUnavailable} attempts of too many addresses are under way
   */
  async attempt<T>(address: string, signIn: () => Promise<T>): Promise<T> {
    const name = nameOf(address)
    const place = this.#places.get(name) ?? { running: 0, waiting: [] }
    if (place.waiting.length >= MAX_WAITING)
      throw new KisError('rate_limit_exceeded', 'Too many attempts to sign in from your address. Wait some seconds, then try again.', {
        retryAfterMs: RETRY_MS,
      })
    if (this.#places.size >= MAX_ADDRESSES && !this.#places.has(name)) throw new ServiceUnavailable('Signing in')
    this.#places.set(name, place)
    if (place.running >= MAX_AT_ONCE) await new Promise<void>((resolve) => place.waiting.push(resolve))
    else place.running += 1
    const startedAt = this.#now()
    try {
      return await signIn()
    } catch (error) {
      await this.#clock.sleep(REFUSED_AFTER_MS - ((this.#now() - startedAt) % REFUSED_AFTER_MS))
      throw error
    } finally {
      // The next one takes over the place.
      const next = place.waiting.shift()
      if (next) next()
      else if (--place.running === 0) this.#places.delete(name)
    }
  }
}

/** One subscriber has a whole network of 64 bits in IPv6. */
function nameOf(address: string): string {
  return isIPv6(address) && !/^::ffff:.*\./i.test(address) ? networkOf(address) : address
}

/** The first 64 bits, written in one way: `::` stands for as many zeros as are missing. */
function networkOf(address: string): string {
  const [front, back] = address.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const zeros = back ? Array<string>(Math.max(0, 8 - front!.length - back.length)).fill('0') : []
  const network = [...front!, ...zeros, ...(back ?? [])].slice(0, 4)
  return network.map((group) => Number.parseInt(group, 16).toString(16)).join(':')
}
