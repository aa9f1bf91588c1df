import type { FastifyReply } from 'fastify'

/** The unanswered requests, each with a signal that aborts when its client leaves before the answer is complete. */
export class UnderWay {
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

  /** Ends them all. Each is answered with this error, inside its stream if that has begun. */
  end(reason: Error): void {
    for (const request of this.#requests) request.abort(reason)
  }
}
