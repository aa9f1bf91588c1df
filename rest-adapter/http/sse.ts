import type { FastifyReply } from 'fastify'
import type { KisError } from '../../subgraphs/common/errors.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { EventStream } from '../../subgraphs/common/server/event-stream.ts'
import { errorBody } from './errors.ts'

/** The request header with which a caller requests the IDs of server-sent events: `true`. */
export const RESUMABLE_HEADER = 'x-kis-resumable'

/** Server-sent events in the formats of the REST API. */
export class RestEventStream extends EventStream {
  readonly #withIds: boolean

  /**
   * `withIds`: the caller requests resumption. Without it no event has an `id:` line, because some clients of the chat
   * protocol expect `data:` after each blank line.
   */
  constructor(reply: FastifyReply, clock: Clock, withIds: boolean, beforeHeaders: () => void) {
    super(reply, clock, beforeHeaders)
    this.#withIds = withIds
  }

  /** Resolves when the client has room for more, or has left. */
  send(...data: readonly string[]): Promise<void> {
    return this.write(data.map((item) => `data: ${item}\n\n`).join(''))
  }

  /** Does what `send` does, with an ID before each item if the caller requests resumption. */
  sendWithIds(...items: readonly { readonly id: string; readonly data: string }[]): Promise<void> {
    return this.write(items.map(({ id, data }) => `${this.#idLine(id)}data: ${data}\n\n`).join(''))
  }

  /**
   * Sends events named by their type, with their cursor as ID if they have one and the caller requests resumption.
   * Without events it only opens the stream.
   */
  async sendTyped(...events: readonly { readonly type: string; readonly cursor?: string }[]): Promise<void> {
    const texts = events.map((event) => {
      const id = event.cursor === undefined ? '' : this.#idLine(event.cursor)
      return `${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
    })
    await this.write(texts.join(''))
  }

  /** Sends the last event after a failure. Does nothing if the client has left. */
  async fail(error: KisError): Promise<void> {
    await this.send(JSON.stringify(errorBody(error)))
  }

  #idLine(id: string): string {
    return this.#withIds ? `id: ${id}\n` : ''
  }
}
