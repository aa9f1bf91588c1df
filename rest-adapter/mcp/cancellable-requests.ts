import type { RequestId } from '@modelcontextprotocol/sdk/types.js'

/** Requests of this process that have no response yet. A notification on another connection can cancel them. */
export class CancellableRequests {
  readonly #cancels = new Map<string, () => void>()

  /**
   * Registers a request, and replaces an earlier one with the same ID: clients must not reuse IDs. Disposing removes
   * it.
   */
  add(apiKey: string, session: string, id: RequestId, cancel: () => void): Disposable {
    const name = requestKey(apiKey, session, id)
    this.#cancels.set(name, cancel)
    return {
      [Symbol.dispose]: () => {
        if (this.#cancels.get(name) === cancel) this.#cancels.delete(name)
      },
    }
  }

  cancel(apiKey: string, session: string, id: RequestId): void {
    this.#cancels.get(requestKey(apiKey, session, id))?.()
  }
}

function requestKey(...parts: readonly [string, string, RequestId]): string {
  return JSON.stringify(parts)
}
