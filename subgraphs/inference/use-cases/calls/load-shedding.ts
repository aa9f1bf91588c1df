import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { KisError } from '../../../common/errors.ts'

/** The priority of a call when the process is overloaded. Charges are never refused: they are not calls. */
export type Importance = keyof typeof SHED_ABOVE

/** The load of a process. */
interface Load {
  /** The delay of the event loop: how late timers run. */
  readonly lagMs: number
  /** Share of the time in which the event loop had work, 0 to 1. */
  readonly utilisation: number
  /** Share of the available memory or of the heap's limit that is used, whichever is greater, 0 to 1. */
  readonly memory: number
}

/**
 * Limits above which each kind of call is refused, the least important kind first. Documents can wait for their
 * embeddings, lists of texts are usually batch work, and a person waits for a chat. `calls` counts the process's calls
 * in progress. A chat takes about 100 KB with its buffers, so 4,000 fit the smallest heap.
 */
const SHED_ABOVE = {
  background: { calls: 1_000, lagMs: 100, memory: 0.75 },
  embeddings: { calls: 2_000, lagMs: 300, memory: 0.8 },
  chat: { calls: 4_000, lagMs: 1_000, memory: 0.85 },
} as const
/**
 * Utilization above which a delayed event loop counts as overloaded. A loop with idle time is delayed by chance, and a
 * busy loop without delay is not overloaded.
 */
const BUSY = 0.95
/** Load counts after it lasts for `SAMPLES` samples. */
const SAMPLE_INTERVAL_MS = 500
const SAMPLES = 4
/** The time in which samples can show that the load has ended. */
const RETRY_MS = SAMPLE_INTERVAL_MS * SAMPLES

/** Refuses calls that would only delay all others, before any work is done for them. */
export class LoadShedder implements Disposable {
  #calls = 0
  #recent: readonly Load[] = []
  readonly #sampling: NodeJS.Timeout

  constructor(sample: () => Load = createProcessSampler()) {
    this.#sampling = setInterval(() => this.note(sample()), SAMPLE_INTERVAL_MS)
    this.#sampling.unref()
  }

  /** Calls in progress. */
  get calls(): number {
    return this.#calls
  }

  /**
   * Counts a call that starts. Returns the function that ends it, which can be called repeatedly.
   * @throws {KisError} `service_unavailable`: the process is overloaded.
   */
  enter(importance: Importance): () => void {
    this.check(importance)
    this.#calls += 1
    let isOver = false
    return () => {
      if (!isOver) this.#calls -= 1
      isOver = true
    }
  }

  /** @throws {KisError} `service_unavailable`: the process is overloaded for calls of this importance. */
  check(importance: Importance): void {
    const most = SHED_ABOVE[importance]
    const isLoaded = this.#recent.length === SAMPLES && this.#recent.every((load) => isAbove(load, most))
    if (this.#calls < most.calls && !isLoaded) return
    throw new KisError('service_unavailable', 'The service is overloaded.', { retryAfterMs: RETRY_MS })
  }

  /** Records one sample of the load. */
  note(load: Load): void {
    this.#recent = [...this.#recent, load].slice(-SAMPLES)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sampling)
  }
}

function isAbove({ lagMs, utilisation, memory }: Load, most: (typeof SHED_ABOVE)[Importance]): boolean {
  return (utilisation > BUSY && lagMs > most.lagMs) || memory > most.memory
}

/** Returns a function that samples the process. The lag is how much later than planned the function is called. */
function createProcessSampler(): () => Load {
  const { constrainedMemory } = process
  const constrained = constrainedMemory.call(process)
  const memoryBytes = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  let sampledAt = performance.now()
  let before = performance.eventLoopUtilization()
  return () => {
    const now = performance.now()
    const lagMs = now - sampledAt - SAMPLE_INTERVAL_MS
    sampledAt = now
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, before)
    before = current
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    return { lagMs, utilisation: utilization, memory: Math.max(process.memoryUsage.rss() / memoryBytes, used_heap_size / heap_size_limit) }
  }
}
