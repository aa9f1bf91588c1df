import type { RequestId } from '@modelcontextprotocol/sdk/types.js'

/** Requests that wait for their response, by which a notification that came on another connection cancels them. In this process alone. */
export class RequestsUnderWay {
  readonly #cancels = new Map<string, () => void>()

  /** Another request under the same name takes its place: ids must not be used twice. Disposing forgets it. */
  add(apiKey: string, session: string, id: RequestId, cancel: () => void): Disposable {
    const name = nameOf(apiKey, session, id)
    this.#cancels.set(name, cancel)
    return {
      [Symbol.dispose]: () => {
        if (this.#cancels.get(name) === cancel) this.#cancels.delete(name)
      },
    }
  }

  cancel(apiKey: string, session: string, id: RequestId): void {
    this.#cancels.get(nameOf(apiKey, session, id))?.()
  }
}

function nameOf(...parts: readonly [string, string, RequestId]): string {
  return JSON.stringify(parts)
}
