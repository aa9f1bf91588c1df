import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './collect-garbage.ts'

const LOOK_MS = 10_000
/** Of the time between two looks, for which the event loop ran. A service that nobody calls takes .01 to .03. */
const QUIET = 0.1
const QUIET_LOOKS = 3
/** A collection is worth its 120 ms when the heap has grown by this much. Young generations alone are 16 MB. */
const WORTH_BYTES = 24 * 1024 ** 2
/** At most one collection in five minutes. */
const LOOKS_BETWEEN = 30

/**
 * Gives memory back to the system when a busy time is over. V8 keeps what its heap has grown to: after 500 slow streams
 * 60 MB that nothing needs. Call it once, when the start's garbage is collected.
 */
export function collectWhenIdle(): void {
  const heap = new IdleHeap(heapBytes())
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
  #neededBytes: number
  #quietLooks = 0
  #looks = LOOKS_BETWEEN

  /** @param neededBytes the size of the heap after a collection */
  constructor(neededBytes: number) {
    this.#neededBytes = neededBytes
  }

  /** @param utilization the share of the time since the last look for which the event loop ran, 0 to 1 */
  isWorthCollecting(utilization: number, bytes: number): boolean {
    this.#looks++
    this.#quietLooks = utilization < QUIET ? this.#quietLooks + 1 : 0
    return this.#quietLooks >= QUIET_LOOKS && this.#looks >= LOOKS_BETWEEN && bytes - this.#neededBytes >= WORTH_BYTES
  }

  noteCollected(neededBytes: number): void {
    this.#neededBytes = neededBytes
    this.#looks = 0
  }
}

function heapBytes(): number {
  return getHeapStatistics().total_heap_size
}
