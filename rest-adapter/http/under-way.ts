import type { FastifyReply } from 'fastify'

/** The requests that are not answered yet, each with a signal that aborts when its client is gone before it has its answer. */
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

  /** Ends them all: each is answered with this reason, in its stream where that has begun. */
  end(reason: Error): void {
    for (const request of this.#requests) request.abort(reason)
  }
}
