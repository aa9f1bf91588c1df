import type { KisError } from '../../subgraphs/common/errors.ts'
import { EventStream } from '../../subgraphs/common/server/event-stream.ts'
import { errorBody } from './errors.ts'

/** Server-sent events in the formats of the REST API. */
export class RestEventStream extends EventStream {
  /** Resolves when the client has room for more, or has left. */
  send(...data: readonly string[]): Promise<void> {
    return this.write(data.map((item) => `data: ${item}\n\n`).join(''))
  }

  /** Does what `send` does, with an id before each item. */
  sendWithIds(...items: readonly { readonly id: string; readonly data: string }[]): Promise<void> {
    return this.write(items.map(({ id, data }) => `id: ${id}\ndata: ${data}\n\n`).join(''))
  }

  /**
   * Sends events named by their type, with their cursor as id if they have one. Without events it only opens the
   * stream.
   */
  async sendTyped(...events: readonly { readonly type: string; readonly cursor?: string }[]): Promise<void> {
    const texts = events.map((event) => {
      const id = event.cursor === undefined ? '' : `id: ${event.cursor}\n`
      return `${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    })
    await this.write(texts.join(''))
  }

  /** Sends the last event after a failure. Does nothing if the client has left. */
  async fail(error: KisError): Promise<void> {
    await this.send(JSON.stringify(errorBody(error)))
  }
}
