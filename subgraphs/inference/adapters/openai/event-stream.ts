import { createParser, type EventSourceParser } from 'eventsource-parser'

/**
 * Most lines between two events that are no fields of the standard. The parser creates an error for each: a megabyte of
 * them would take seconds of the event loop.
 */
const MAX_UNKNOWN = 20

/** An event stream with too many unknown lines. */
export class EventStreamError extends Error {}

/** An event stream with a line or an event that is too long. */
export class EventTooLong extends EventStreamError {}

/**
 * Reads server-sent events from bytes as they arrive: characters and line ends may be split anywhere. Calls `onEvent`
 * with the data and the name ('' for most) of each event.
 */
export class EventStreamParser {
  readonly #parser: EventSourceParser
  readonly #decoder = new TextDecoder()
  #endsInCr = false
  #unknown = 0

  /** `maxLength` limits an unfinished line, and the data of an unfinished event, in UTF-16 units. */
  constructor(onEvent: (data: string, name: string) => void, maxLength: number) {
    this.#parser = createParser({
      onEvent: ({ data, event = '' }) => {
        this.#unknown = 0
        onEvent(data, event)
      },
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') throw new EventTooLong(`a line or an event is longer than ${maxLength} characters`)
        // The standard ignores unknown fields.
        this.#unknown += 1
        if (this.#unknown > MAX_UNKNOWN) throw new EventStreamError(`more than ${MAX_UNKNOWN} lines between two events are unknown`)
      },
      maxBufferSize: maxLength,
    })
  }

  /** @throws {EventTooLong | EventStreamError} a line or an event is too long, or too many lines are unknown */
  push(bytes: Buffer): void {
    this.#feed(this.#decoder.decode(bytes, { stream: true }))
  }

  /**
   * Ends the stream. Some servers leave out the last blank line; their last event is read, too.
   * @throws {EventStreamError} as `push`
   */
  end(): void {
    this.#feed(`${this.#decoder.decode()}\n\n`)
  }

  /**
   * Normalizes each line end to LF: once the parser has seen a CR, it searches for the next LF at every line, and
   * without one its time is quadratic. An LF that follows a CR in the next piece belongs to the same line end.
   */
  #feed(text: string): void {
    if (text === '') return
    const fresh = this.#endsInCr && text.startsWith('\n') ? text.slice(1) : text
    this.#endsInCr = text.endsWith('\r')
    this.#parser.feed(fresh.replace(/\r\n?/g, '\n'))
  }
}
