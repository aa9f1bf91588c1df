import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { KisError } from '../../../common/errors.ts'

/** What a call is worth when not all can be answered. Charges are never refused: they are no calls. */
export type Importance = keyof typeof SHED_ABOVE

/** What a process is carrying. */
export interface Load {
  /** How late the event loop comes to what is due. */
  readonly lagMs: number
  /** Part of the time in which the event loop had work, 0 to 1. */
  readonly utilisation: number
  /** Part of the memory, or of the heap, that is taken: the fuller of the two, 0 to 1. */
  readonly memory: number
}

/**
 * Where each kind of call is refused, the least important first: documents wait for their embeddings, lists of texts
 * are somebody's batch, at a chat sits a person. `calls` are those under way in the process: a chat takes some 100 KB
 * with its buffers, so that 4,000 fit into the smallest heap.
 */
const SHED_ABOVE = {
  background: { calls: 1_000, lagMs: 100, memory: 0.75 },
  embeddings: { calls: 2_000, lagMs: 300, memory: 0.8 },
  chat: { calls: 4_000, lagMs: 1_000, memory: 0.85 },
} as const
/**
 * A loop that has idle time is late by chance; one that has none is not overloaded as long as it is in time. So both
 * must be.
 */
const BUSY = 0.95
/** Load must last this long before it counts, in so many looks. */
const LOOK_EVERY_MS = 500
const LOOKS = 4
/** As long as it takes to see that the load is over. */
const RETRY_MS = LOOK_EVERY_MS * LOOKS

/** Refuses calls that would only make all others late, before anything is done for them. */
export class LoadShedder implements Disposable {
  #calls = 0
  #recent: readonly Load[] = []
  readonly #looking: NodeJS.Timeout

  constructor(look: () => Load = lookAtProcess()) {
    this.#looking = setInterval(() => this.note(look()), LOOK_EVERY_MS)
    this.#looking.unref()
  }

  /** Calls under way. */
  get calls(): number {
    return this.#calls
  }

  /** Counts a call that begins; gives what ends it, which may be repeated. @throws {KisError} `service_unavailable` */
  enter(importance: Importance): () => void {
    this.check(importance)
    this.#calls += 1
    let isOver = false
    return () => {
      if (!isOver) this.#calls -= 1
      isOver = true
    }
  }

  /** @throws {KisError} `service_unavailable` */
  check(importance: Importance): void {
    const most = SHED_ABOVE[importance]
    const isLoaded = this.#recent.length === LOOKS && this.#recent.every((load) => isAbove(load, most))
    if (this.#calls < most.calls && !isLoaded) return
    throw new KisError('service_unavailable', 'The service has more to do than it can at the moment.', { retryAfterMs: RETRY_MS })
  }

  /** One look at the process. */
  note(load: Load): void {
    this.#recent = [...this.#recent, load].slice(-LOOKS)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#looking)
  }
}

function isAbove({ lagMs, utilisation, memory }: Load, most: (typeof SHED_ABOVE)[Importance]): boolean {
  return (utilisation > BUSY && lagMs > most.lagMs) || memory > most.memory
}

/** The lag is how much later than due it was called. */
function lookAtProcess(): () => Load {
  const { constrainedMemory } = process
  const constrained = constrainedMemory.call(process)
  const memoryBytes = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  let lookedAt = performance.now()
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.now()
    const lagMs = now - lookedAt - LOOK_EVERY_MS
    lookedAt = now
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    return { lagMs, utilisation: utilization, memory: Math.max(process.memoryUsage.rss() / memoryBytes, used_heap_size / heap_size_limit) }
  }
}
