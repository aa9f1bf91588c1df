import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'

type IdPrefix =
  | 'org'
  | 'och'
  | 'key'
  | 'mem'
  | 'inv'
  | 'ses'
  | 'ers'
  | 'col'
  | 'file'
  | 'upload'
  | 'web'
  | 'doc'
  | 'gq'
  | 'evl'
  | 'remb'
  | 'hold'
  | 'ent'
  | 'use'
  | 'req'
  | 'chatcmpl'
  | 'strm'
  | 'call'
  | 'agt'
  | 'run'
  | 'thr'
  | 'wfl'
  | 'wfr'
  | 'job'
  | 'rerank'
  | 'resp'
  | 'msg'
  | 'rs'
  | 'fc'
  | 'mcp'
  | 'whe'
  | 'evt'
  | 'bak'
  | 'exp'
  | 'inst'
  | 'call'

/**
 * In a burst, ids may be this far ahead of the clock. If the clock is further behind, it was set back, and ids follow
 * it: the age of a hold is read from its id.
 */
const MAX_AHEAD_MS = 5_000

/** Random bytes of one id, and of a batch requested from the system. */
const BYTES_OF_ID = 10
const POOL_BYTES = 400 * BYTES_OF_ID

/** Creates ids `<prefix>_<UUIDv7 in 32 hexadecimal digits>`, which sort by creation time (RFC 9562, section 5.7). */
export type IdSource = (prefix: IdPrefix) => string

/** Creates an id source. Its ids are unique across processes. */
export function idSource(clock: Clock): IdSource {
  let lastMs = 0
  let counter = 0
  let pool = Buffer.alloc(0)
  let used = 0
  return (prefix) => {
    // A system call for each id would take longer than all other steps.
    if (used >= pool.length) {
      pool = randomBytes(POOL_BYTES)
      used = 0
    }
    const random = pool.subarray(used, used + BYTES_OF_ID)
    used += BYTES_OF_ID
    // Ids of one millisecond stay in order: the 12 bits of rand_a count up (RFC 9562, section 6.2, method 1).
    const now = clock.now().getTime()
    if (now > lastMs || now < lastMs - MAX_AHEAD_MS) {
      lastMs = now
      counter = ((random[0]! << 8) | random[1]!) & 0x7ff
    } else if (++counter > 0xfff) {
      lastMs += 1
      counter = 0
    }
    const time = lastMs.toString(16).padStart(12, '0')
    const tail = random.subarray(2)
    tail[0] = (tail[0]! & 0x3f) | 0x80
    return `${prefix}_${time}7${counter.toString(16).padStart(3, '0')}${tail.toString('hex')}`
  }
}

/** Returns the creation time of an id, in milliseconds since 1970; `undefined` when it is not an id of this service. */
export function timeOfId(id: string): number | undefined {
  const match = /^[a-z]+_([0-9a-f]{12})7[0-9a-f]{19}$/.exec(id)
  return match ? Number.parseInt(match[1]!, 16) : undefined
}

/** Returns `length` random hexadecimal digits, for tokens that nobody may guess. */
export function randomHex(length: number): string {
  return randomBytes(Math.ceil(length / 2))
    .toString('hex')
    .slice(0, length)
}
