import type { Log } from '../process/log.ts'

/** How often it looks: often enough to see a pause of `BLOCKED_MS`, seldom enough to cost nothing. */
const LOOK_EVERY_MS = 20
/** A pause of the event loop that the log names: everybody waits meanwhile, and a probe with a short deadline may fail. */
const BLOCKED_MS = 200
/** Work that has waited for so long is old. */
const OLD_MS = 300
/** A queue in which there was old work for this long, again and again, stands; what is done sooner is a burst. */
const STANDING_MS = 1_500
/** Sights of old work that make a queue, so long apart at least: a start, or one long pause and its aftermath, are fewer. */
const MIN_SIGHTS = 5
const APART_MS = 100
/** Old work seen again within this time belongs to the same queue: clients that were answered together return together, and between the two the queue is empty. */
const EMPTY_MS = 1_000
/** Names in one line of the log. */
const MAX_NAMES = 20
/** The log gets one line in this time; a process that is late all the time would write nothing else. */
const SAY_EVERY_MS = 1_000

interface Named {
  readonly name: string
  readonly sinceMs: number
}

/**
 * Looks at what waits for its turn in this process: in the event loop, and where `wait` says so. The log names what was under way while the
 * event loop was blocked: most likely one of the newest blocked it.
 */
export class QueueWatch implements Disposable {
  readonly #log: Log
  readonly #now: () => number
  readonly #underWay = new Set<Named>()
  /** What ended since the last look: that may be what blocked. The last ones. */
  #ended: Named[] = []
  /** The oldest first. */
  readonly #waiting = new Set<{ readonly sinceMs: number }>()
  /** Old work, seen again and again: when first and last, and how often. */
  #old = { sinceMs: 0, untilMs: Number.NEGATIVE_INFINITY, sights: 0 }
  #dueAtMs: number
  #saidAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
    this.#dueAtMs = now() + LOOK_EVERY_MS
    this.#schedule()
  }

  /** Something begins that the log may name, such as an operation; gives what ends it. */
  begin(name: string): () => void {
    const work = { name, sinceMs: this.#now() }
    this.#underWay.add(work)
    return () => {
      if (!this.#underWay.delete(work)) return
      this.#ended.push(work)
      if (this.#ended.length > MAX_NAMES) this.#ended.shift()
    }
  }

  /** Something begins to wait for a part of this process, and for no vendor or client; gives what ends the wait. */
  wait(): () => void {
    const work = { sinceMs: this.#now() }
    this.#waiting.add(work)
    return () => this.#waiting.delete(work)
  }

  /** How long the oldest work has waited for its turn, in milliseconds. */
  get ageMs(): number {
    const [oldest] = this.#waiting
    const nowMs = this.#now()
    return Math.max(0, nowMs - this.#dueAtMs, oldest ? nowMs - oldest.sinceMs : 0)
  }

  /**
   * Whether there was work older than 300 ms again and again for 1.5 s, up to now. Looks by itself: with a thousand connections that always have something to
   * read, the event loop may not come to its timers for many seconds.
   */
  stands(): boolean {
    const nowMs = this.#now()
    this.#see(nowMs, this.ageMs)
    const { sinceMs, untilMs, sights } = this.#old
    return sights >= MIN_SIGHTS && untilMs - sinceMs >= STANDING_MS && nowMs - untilMs <= EMPTY_MS
  }

  /** Called by its own timer. */
  look(): void {
    const atMs = this.#now()
    const lateMs = atMs - this.#dueAtMs
    this.#see(atMs, this.ageMs)
    if (lateMs >= BLOCKED_MS) this.#say(atMs, lateMs)
    this.#ended = []
    this.#dueAtMs = atMs + LOOK_EVERY_MS
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.look()
      this.#schedule()
    }, LOOK_EVERY_MS).unref()
  }

  #see(atMs: number, ageMs: number): void {
    if (ageMs <= OLD_MS) return
    const { sinceMs, untilMs, sights } = this.#old
    if (atMs - ageMs > untilMs + EMPTY_MS) this.#old = { sinceMs: atMs, untilMs: atMs, sights: 1 }
    else if (atMs - untilMs >= APART_MS) this.#old = { sinceMs, untilMs: atMs, sights: sights + 1 }
  }

  /** The newest first: what blocks has mostly just begun. */
  #say(atMs: number, lateMs: number): void {
    if (atMs - this.#saidAtMs < SAY_EVERY_MS) return
    this.#saidAtMs = atMs
    const newest = [...this.#underWay, ...this.#ended].sort((a, b) => b.sinceMs - a.sinceMs).slice(0, MAX_NAMES)
    const operations = newest.map(({ name, sinceMs }) => `${name} (${Math.round(atMs - sinceMs)} ms)`)
    // Without anything to name it is most likely a start, which loads code and schemas.
    const level = operations.length > 0 ? 'warn' : 'info'
    this.#log[level]({ blockedMs: Math.round(lateMs), operations, underWay: this.#underWay.size }, 'the event loop was blocked')
  }
}
