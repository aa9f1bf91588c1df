import type { FastifyReply } from 'fastify'

/** The requests in flight, each with a signal that aborts when its client leaves before the response is complete. */
export class InFlightRequests {
  readonly #requests = new Set<AbortController>()

  add(reply: FastifyReply): AbortSignal {
    const ended = new AbortController()
    this.#requests.add(ended)
    reply.raw.once('close', () => {
      this.#requests.delete(ended)
      if (!reply.raw.writableFinished) ended.abort()
    })
    return ended.signal
  }

  /** Ends all requests. Each gets this error as its response, or inside its stream if that has started. */
  end(reason: Error): void {
    for (const request of this.#requests) request.abort(reason)
  }
}
