import { StringDecoder } from 'node:string_decoder'

/** A broken or oversized event stream. */
export class EventStreamError extends Error {}

/**
 * Reads server-sent events (WHATWG HTML, section 9.2.6) from bytes as they arrive: characters and line ends may be split anywhere.
 * Calls `onEvent` with the data of each event and its name ('' for most).
 */
export class EventStreamParser {
  readonly #onEvent: (data: string, name: string) => void
  readonly #maxLength: number
  readonly #decoder = new StringDecoder('utf8')
  #partialLine = ''
  #data: string | undefined
  #name = ''
  #atStart = true
  #afterCarriageReturn = false

  /** `maxLength` bounds a line and the data of one event, in UTF-16 units. */
  constructor(onEvent: (data: string, name: string) => void, maxLength: number) {
    this.#onEvent = onEvent
    this.#maxLength = maxLength
  }

  push(bytes: Buffer): void {
    this.#read(this.#decoder.write(bytes))
  }

  /** The stream is over. Servers that leave out the last blank line are understood. */
  end(): void {
    this.#read(this.#decoder.end())
    if (this.#partialLine) this.#line(this.#partialLine)
    this.#partialLine = ''
    this.#dispatch()
  }

  #read(decoded: string): void {
    let text = decoded
    if (text === '') return
    if (this.#atStart) {
      this.#atStart = false
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
    }
    if (this.#afterCarriageReturn && text.startsWith('\n')) text = text.slice(1)
    this.#afterCarriageReturn = text.endsWith('\r')
    if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n')

    let from = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      const line = this.#partialLine + text.slice(from, end)
      this.#partialLine = ''
      from = end + 1
      this.#line(line)
    }
    this.#partialLine += text.slice(from)
    if (this.#partialLine.length > this.#maxLength) throw new EventStreamError('a line is too long')
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch()
    } else if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5)
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
      if (this.#data.length > this.#maxLength) throw new EventStreamError('an event is too long')
    } else if (line.startsWith('event:')) {
      this.#name = line.slice(6).trim()
    }
    // Comments (`: ping`), `id`, `retry` and unknown fields mean nothing here.
  }

  #dispatch(): void {
    const data = this.#data
    const name = this.#name
    this.#data = undefined
    this.#name = ''
    if (data !== undefined) this.#onEvent(data, name)
  }
}
