import { type Clock, systemClock } from '../process/clock.ts'

/** Smaller differences are ignored: HTTP sends whole seconds, and responses take time. */
const TOLERANCE_MS = 2_500
const READING_EVERY_MS = 10_000

/**
 * The time that all processes of a service share, so that leases, holds and signed principals mean the same everywhere,
 * even if the machines' clocks differ by minutes. Billing follows its store. Every other role follows billing, or a
 * role that does. The machine's own clock serves until the first reading. After it, time passes evenly, whatever
 * happens to the machine's clock.
 */
export class SharedClock implements Clock {
  /** Milliseconds since 1970, and `performance.now()` at that moment. */
  #anchor: { readonly time: number; readonly at: number } | undefined
  readonly sleep = systemClock.sleep

  now(): Date {
    return new Date(this.#anchor ? this.#anchor.time + performance.now() - this.#anchor.at : Date.now())
  }

  /**
   * Takes a reading of another clock, made between `sentAt` (by `performance.now()`) and now. The error of a reading is
   * up to half of the time that it took, so a slow reading counts only if the clocks differ by more.
   */
  observe(shown: Date, sentAt: number): void {
    const at = performance.now()
    const inexactness = (at - sentAt) / 2
    const time = shown.getTime() + inexactness
    if (Number.isNaN(time)) return
    const own = this.now().getTime()
    const differs = Math.abs(time - own) > TOLERANCE_MS + inexactness
    if (differs) this.#anchor = { time, at }
    else this.#anchor ??= { time: own, at }
  }

  /**
   * Follows another clock for the rest of the process. Resolves after the first reading.
   * @throws the error of the first reading
   */
  async follow(read: () => Promise<Date>): Promise<void> {
    await this.setBy(read)
    setInterval(() => this.setBy(read).catch(() => undefined), READING_EVERY_MS).unref()
  }

  /** Reads another clock once. */
  async setBy(read: () => Promise<Date>): Promise<void> {
    const sentAt = performance.now()
    this.observe(await read(), sentAt)
  }
}
