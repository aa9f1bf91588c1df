import type { Log } from '../process/log.ts'

/** Interval of checks: short enough to see a pause of `BLOCKED_MS`, long enough to cost nothing. */
const CHECK_EVERY_MS = 20
/** A pause of the event loop to log: all requests wait meanwhile, and a probe with a short deadline may fail. */
const BLOCKED_MS = 200
/** Work that has waited for this long is old. */
const OLD_MS = 300
/** If old work is seen repeatedly for this long, the queue lasts. A queue that ends sooner is a burst. */
const STANDING_MS = 1_500
/** Sightings of old work that make a lasting queue. A start, or one long pause and its aftermath, cause fewer. */
const MIN_SIGHTS = 5
const APART_MS = 100
/**
 * Old work seen again within this time belongs to the same queue. Clients that got responses together return together,
 * and the queue is empty in between.
 */
const EMPTY_MS = 1_000
/**
 * The number of latest waits that started alone and are remembered. The shortest shows how long a wait takes without a
 * queue.
 */
const ALONE = 5
/**
 * Work that arrives while a store writes waits for that write, and then for its own. So work is in a queue only after
 * twice the time that it takes alone.
 */
const WRITES = 2
/**
 * Most of a wait that is taken for the store's own time and not for a queue. A store whose round trips take 0.25 s needs
 * as much.
 */
const MOST_ALLOWED_MS = 1_000
/** Limit of names in one log line. */
const MAX_NAMES = 20
/** The log gets at most one line in this interval. Otherwise a process that is always late would log nothing else. */
const SAY_EVERY_MS = 1_000

interface Named {
  readonly name: string
  readonly sinceMs: number
}

/**
 * Watches what waits in this process: in the event loop, and where `wait` reports it. While the event loop is blocked,
 * the log names what was running: most likely one of the newest operations blocked it.
 */
export class QueueWatch implements Disposable {
  readonly #log: Log
  readonly #now: () => number
  readonly #inFlight = new Set<Named>()
  /** Operations that ended since the last check, which may have blocked the loop. Only the last ones. */
  #ended: Named[] = []
  /** Waiting work, oldest first. */
  readonly #waiting = new Set<{ readonly sinceMs: number }>()
  /** Durations of the latest waits that started while there was no other, in milliseconds. */
  #alone: readonly number[] = []
  /** The sightings of old work: the time of the first and the last, and their number. */
  #old = { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY, sights: 0 }
  #dueAtMs: number
  #saidAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
    this.#dueAtMs = now() + CHECK_EVERY_MS
    this.#schedule()
  }

  /** Starts an operation that the log may name. Returns the function to call at its end. */
  start(name: string): () => void {
    const work = { name, sinceMs: this.#now() }
    this.#inFlight.add(work)
    return () => {
      if (!this.#inFlight.delete(work)) return
      this.#ended.push(work)
      if (this.#ended.length > MAX_NAMES) this.#ended.shift()
    }
  }

  /** Starts a wait for a part of this process, not for a vendor or client. Returns the function to call at its end. */
  wait(): () => void {
    const isAlone = this.#waiting.size === 0
    const work = { sinceMs: this.#now() }
    this.#waiting.add(work)
    return () => {
      if (this.#waiting.delete(work) && isAlone) this.#alone = [...this.#alone, this.#now() - work.sinceMs].slice(-ALONE)
    }
  }

  /**
   * How long the oldest work has waited, in milliseconds. The time that it would take without a queue does not count,
   * because a store may be far away.
   */
  get ageMs(): number {
    const [oldest] = this.#waiting
    const nowMs = this.#now()
    return Math.max(0, nowMs - this.#dueAtMs, oldest ? nowMs - oldest.sinceMs - this.#allowedMs : 0)
  }

  get #allowedMs(): number {
    return this.#alone.length === 0 ? 0 : Math.min(WRITES * Math.min(...this.#alone), MOST_ALLOWED_MS)
  }

  /**
   * Returns whether old work was seen repeatedly for 1.5 s up to now. This call makes a check itself: with a thousand
   * connections that always have data, the event loop may not reach its timers for many seconds. `ageMs`: how long the
   * oldest work has waited, if the caller has a queue of its own.
   */
  stands(ageMs = this.ageMs): boolean {
    const nowMs = this.#now()
    this.#see(nowMs, ageMs)
    const { sinceMs, untilMs, sights } = this.#old
    return sights >= MIN_SIGHTS && untilMs - sinceMs >= STANDING_MS && nowMs - untilMs <= EMPTY_MS
  }

  /** Makes one check. The watch's own timer calls it. */
  check(): void {
    const atMs = this.#now()
    const lateMs = atMs - this.#dueAtMs
    this.#see(atMs, this.ageMs)
    if (lateMs >= BLOCKED_MS) this.#say(atMs, lateMs)
    this.#ended = []
    this.#dueAtMs = atMs + CHECK_EVERY_MS
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.check()
      this.#schedule()
    }, CHECK_EVERY_MS).unref()
  }

  #see(atMs: number, ageMs: number): void {
    if (ageMs <= OLD_MS) return
    const { sinceMs, untilMs, sights } = this.#old
    if (atMs - ageMs > untilMs + EMPTY_MS) this.#old = { sinceMs: atMs, untilMs: atMs, sights: 1 }
    else if (atMs - untilMs >= APART_MS) this.#old = { sinceMs, untilMs: atMs, sights: sights + 1 }
  }

  /** Logs the pause, with the newest operations first: the one that blocks has usually just started. */
  #say(atMs: number, lateMs: number): void {
    if (atMs - this.#saidAtMs < SAY_EVERY_MS) return
    this.#saidAtMs = atMs
    const newest = [...this.#inFlight, ...this.#ended].sort((a, b) => b.sinceMs - a.sinceMs).slice(0, MAX_NAMES)
    const operations = newest.map(({ name, sinceMs }) => `${name} (${Math.round(atMs - sinceMs)} ms)`)
    // A pause without a name is most likely a start, which loads code and schemas.
    const level = operations.length > 0 ? 'warn' : 'info'
    this.#log[level]({ blockedMs: Math.round(lateMs), operations, inFlight: this.#inFlight.size }, 'the event loop was blocked')
  }
}
