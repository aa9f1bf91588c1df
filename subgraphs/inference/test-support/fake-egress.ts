import { Egress, EgressError, type EgressRequest } from '../../common/egress/egress.ts'

/**
 * The internet of a test: what is at an address, by its URL. Everything else is unreachable. Checks addresses like the
 * real one. DNS knows the hosts with pages.
 */
export class FakeEgress implements Pick<Egress, 'allows' | 'mayReach' | 'fetch'> {
  readonly #real = new Egress()
  readonly pages = new Map<string, Uint8Array | number | EgressError | 'wait'>()
  readonly fetched: EgressRequest[] = []
  /** Called when a fetch begins. */
  onFetch: () => void = () => undefined
  /** Names whose addresses were looked up. */
  readonly lookups: string[] = []
  /** Running fetches, and the most that ran at once. */
  running = 0
  mostRunning = 0

  allows(url: string): boolean {
    return this.#real.allows(url)
  }

  async mayReach(url: string): Promise<boolean> {
    this.lookups.push(new URL(url).hostname)
    return this.allows(url) && [...this.pages.keys()].some((page) => new URL(page).host === new URL(url).host)
  }

  async fetch(request: EgressRequest, signal: AbortSignal) {
    signal.throwIfAborted()
    await request.authorize?.(request.url)
    this.fetched.push(request)
    this.onFetch()
    this.running += 1
    this.mostRunning = Math.max(this.mostRunning, this.running)
    try {
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
      const page = this.pages.get(request.url) ?? new EgressError('unreachable')
      if (page === 'wait')
        return await new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      if (page instanceof EgressError) throw page
      const [status, body] = typeof page === 'number' ? [page, Buffer.alloc(0)] : [200, Buffer.from(page)]
      return { status, headers: {}, url: request.url, body }
    } finally {
      this.running -= 1
    }
  }
}
