import { createParser, type EventSourceParser } from 'eventsource-parser'

/** An event stream with a line or an event that is too long. */
export class EventStreamError extends Error {}

/**
 * Reads server-sent events from bytes as they arrive: characters and line ends may be split anywhere. Calls `onEvent`
 * with the data and the name ('' for most) of each event.
 */
export class EventStreamParser {
  readonly #parser: EventSourceParser
  readonly #decoder = new TextDecoder()

  /** `maxLength` bounds an unfinished line, and the data of an unfinished event, in UTF-16 units. */
  constructor(onEvent: (data: string, name: string) => void, maxLength: number) {
    this.#parser = createParser({
      onEvent: ({ data, event = '' }) => onEvent(data, event),
      onError({ type }) {
        if (type === 'max-buffer-size-exceeded') throw new EventStreamError(`a line or an event is longer than ${maxLength} characters`)
        // The standard ignores unknown fields.
      },
      maxBufferSize: maxLength,
    })
  }

  /** @throws {EventStreamError} a line or an event is too long */
  push(bytes: Buffer): void {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }))
  }

  /**
   * Ends the stream. Some servers leave out the last blank line; their last event is read, too.
   * @throws {EventStreamError} a line or an event is too long
   */
  end(): void {
    this.#parser.feed(`${this.#decoder.decode()}\n\n`)
  }
}
