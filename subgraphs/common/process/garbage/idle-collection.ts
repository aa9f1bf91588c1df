import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './collect-garbage.ts'

const LOOK_MS = 1_000
/** Of the time between two looks, for which the event loop ran. A service that nobody calls takes .01 to .03. */
const QUIET = 0.1
/** Quiet looks in a row before the start's garbage is collected, and before that of a busy time is. */
const QUIET_LOOKS = { afterStart: 1, later: 30 }
/** A collection is worth its 120 ms when the heap has grown by this much. Young generations alone are 16 MB. */
const WORTH_BYTES = 24 * 1024 ** 2
/** The stop grows with what is in use, to 1.4 s with this much. A link gives a silent process 4 s. */
const MOST_BYTES = 512 * 1024 ** 2
/** At most one collection in five minutes. */
const LOOKS_BETWEEN = 300

/**
 * Gives memory back to the system while nobody is kept waiting: first what a start leaves, and later what a busy time
 * leaves. V8 keeps what its heap has grown to: after 500 slow streams 60 MB that nothing needs. Call it when the service
 * is ready.
 */
export function collectWhenIdle(): void {
  const heap = new IdleHeap()
  let before = performance.eventLoopUtilization()
  const look = async () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (!heap.isWorthCollecting(utilization, heapBytes())) return
    await collectGarbage()
    heap.noteCollected(heapBytes())
  }
  setInterval(() => void look(), LOOK_MS).unref()
}

/** Decides when a collection pays, by looks that are evenly spaced. */
export class IdleHeap {
  /** The size of the heap after the last collection; undefined before the first. */
  #neededBytes: number | undefined
  #quietLooks = 0
  #looks = 0

  /** @param utilization the share of the time since the last look for which the event loop ran, 0 to 1 */
  isWorthCollecting(utilization: number, bytes: number): boolean {
    this.#looks++
    this.#quietLooks = utilization < QUIET ? this.#quietLooks + 1 : 0
    if (bytes > MOST_BYTES) return false
    if (this.#neededBytes === undefined) return this.#quietLooks >= QUIET_LOOKS.afterStart
    return this.#quietLooks >= QUIET_LOOKS.later && this.#looks >= LOOKS_BETWEEN && bytes - this.#neededBytes >= WORTH_BYTES
  }

  noteCollected(neededBytes: number): void {
    this.#neededBytes = neededBytes
    this.#looks = 0
  }
}

function heapBytes(): number {
  return getHeapStatistics().total_heap_size
}
