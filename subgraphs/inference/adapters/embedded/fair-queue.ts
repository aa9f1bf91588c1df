/**
 * Queries go before documents until they have taken this long since a document last had its turn. So many searches
 * cannot stop documents, and a search rarely waits for a second batch.
 */
const MAX_QUERIES_MS = 300
/**
 * In every eighth of its turns, the oldest job of an organization runs, however large its call is, so that small calls
 * cannot delay it forever.
 */
const OLDEST_EVERY = 8

/** What the queue knows of a job. */
export interface JobRequest {
  readonly organizationId: string
  /** Somebody waits for it: it goes before documents, of whatever organization. */
  readonly isQuery: boolean
  /** Jobs of the call that it is a part of. */
  readonly size: number
}

interface Job extends JobRequest {
  readonly line: Line
  readonly start: () => void
}

/** An organization that has jobs, or has had more than its share. */
interface Line {
  jobs: number
  served: number
  /** How much of its share it has used, on the queue's own time scale. */
  usedMs: number
  /** The duration of its last job, and the estimate for its next one. */
  jobMs: number
}

/**
 * Runs one job at a time: queries first. Otherwise organizations share the time (weighted fair queueing with equal
 * weights): the next is the one that will have used the least after its job, and a newcomer starts level with the one
 * that has used the least so far. Within an organization small calls come first.
 */
export class FairQueue {
  readonly #lines = new Map<string, Line>()
  readonly #waiting = new Set<Job>()
  readonly #now: () => number
  #isBusy = false
  #levelMs = 0
  #queriesMs = 0

  constructor(now = () => performance.now()) {
    this.#now = now
  }

  /**
   * Gives what `work` gives, once it had its turn.
   * @throws the reason of the aborted signal; the work does not begin
   */
  async run<T>(request: JobRequest, signal: AbortSignal, work: () => T | Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const line = this.#lineOf(request.organizationId)
    const started = Promise.withResolvers<void>()
    const job: Job = { ...request, line, start: started.resolve }
    const onAbort = () => {
      if (this.#waiting.delete(job)) line.jobs -= 1
      started.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.add(job)
    this.#startNext()
    await started.promise.finally(() => signal.removeEventListener('abort', onAbort))
    const startedMs = this.#now()
    try {
      return await work()
    } finally {
      this.#end(job, this.#now() - startedMs)
    }
  }

  #lineOf(organizationId: string): Line {
    const line = this.#lines.get(organizationId) ?? { jobs: 0, served: 0, usedMs: 0, jobMs: 0 }
    if (line.jobs === 0) line.usedMs = Math.max(line.usedMs, this.#levelMs)
    line.jobs += 1
    this.#lines.set(organizationId, line)
    return line
  }

  #startNext(): void {
    if (this.#isBusy) return
    this.#level()
    let next: Job | undefined
    for (const job of this.#waiting) if (!next || this.#isBefore(job, next)) next = job
    if (!next) return
    this.#isBusy = true
    this.#waiting.delete(next)
    next.line.served += 1
    next.start()
  }

  #end({ line, isQuery }: Job, tookMs: number): void {
    line.jobs -= 1
    line.jobMs = tookMs
    line.usedMs += tookMs
    this.#queriesMs = isQuery ? this.#queriesMs + tookMs : 0
    this.#isBusy = false
    this.#startNext()
  }

  /** Raises the level to that of the organization that has used the least, and forgets those below without jobs. */
  #level(): void {
    const busy = [...this.#lines.values()].filter(({ jobs }) => jobs > 0)
    if (busy.length > 0) this.#levelMs = Math.max(this.#levelMs, Math.min(...busy.map(({ usedMs }) => usedMs)))
    for (const [organizationId, { jobs, usedMs }] of this.#lines)
      if (jobs === 0 && (busy.length === 0 || usedMs <= this.#levelMs)) this.#lines.delete(organizationId)
  }

  /** Of two equals the older stays first. */
  #isBefore(a: Job, b: Job): boolean {
    if (a.isQuery !== b.isQuery) return a.isQuery === this.#queriesMs < MAX_QUERIES_MS
    if (a.line !== b.line) return a.line.usedMs + a.line.jobMs < b.line.usedMs + b.line.jobMs
    return a.line.served % OLDEST_EVERY !== OLDEST_EVERY - 1 && a.size < b.size
  }
}
