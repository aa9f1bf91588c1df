import { type Clock, systemClock } from '../process/clock.ts'

/** A difference up to this is no difference: HTTP tells whole seconds, and answers take their time. */
const TOLERANCE_MS = 2_500
/** A reading that took longer says too little. */
const MAX_READING_MS = 2_000
const READING_EVERY_MS = 30_000

/**
 * The time that the processes of a service share, so that leases, holds and signed principals mean the same everywhere, though the clocks of
 * their machines be minutes apart: billing goes by its store, every other role by billing or by who goes by it. The machine's own clock serves until
 * the first reading; from then on time passes evenly, whatever is done to that clock.
 */
export class SharedClock implements Clock {
  /** Milliseconds since 1970, and `performance.now()` at that time. */
  #anchor: { readonly time: number; readonly at: number } | undefined
  readonly sleep = systemClock.sleep

  now(): Date {
    return new Date(this.#anchor ? this.#anchor.time + performance.now() - this.#anchor.at : Date.now())
  }

  /** What another clock showed between `sentAt`, by `performance.now()`, and now. True: this one was set by it. */
  observe(shown: Date, sentAt: number): boolean {
    const at = performance.now()
    const time = shown.getTime() + (at - sentAt) / 2
    if (Number.isNaN(time) || at - sentAt > MAX_READING_MS) return false
    const own = this.now().getTime()
    const differs = Math.abs(time - own) > TOLERANCE_MS
    if (differs) this.#anchor = { time, at }
    else this.#anchor ??= { time: own, at }
    return differs
  }

  /** Goes by another clock for the rest of the process; resolves after the first reading. @throws what the first reading throws. */
  async follow(read: () => Promise<Date>): Promise<void> {
    const reading = async () => {
      const sentAt = performance.now()
      this.observe(await read(), sentAt)
    }
    await reading()
    setInterval(() => reading().catch(() => undefined), READING_EVERY_MS).unref()
  }
}
