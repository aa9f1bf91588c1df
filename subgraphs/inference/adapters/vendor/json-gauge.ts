/**
 * Deepest nesting. `JSON.stringify` overflows the stack some thousands of levels down. Responses of vendors have about
 * ten.
 */
const MAX_DEPTH = 500
/** Most lists, objects and fields of a response. 20 MiB of tokens with their log probabilities have 1.6 million. */
export const MAX_RESPONSE_PARTS = 2_000_000
/** Limit of one event of a stream. A token with 20 alternatives has 105. */
export const MAX_EVENT_PARTS = 100_000
/** Most items of a response's lists and fields. 2,048 vectors of 4,096 numbers have 8.4 million. */
const MAX_ITEMS = 10_000_000

const [QUOTE, BACKSLASH, COMMA, COLON, LINE_FEED, CARRIAGE_RETURN] = [0x22, 0x5c, 0x2c, 0x3a, 0x0a, 0x0d]
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * Counts the parts of JSON while its bytes arrive, before it is parsed: 128 MiB of empty objects would take 4 GB and a
 * minute of the event loop. In a stream of values each is counted separately; bytes between values are skipped.
 */
export class JsonGauge {
  readonly #maxParts: number
  readonly #maxItems: number
  #depth = 0
  #parts = 0
  #items = 0
  #isString = false
  #isEscaped = false

  constructor(maxParts: number, maxItems: number = MAX_ITEMS) {
    this.#maxParts = maxParts
    this.#maxItems = maxItems
  }

  /** Counts the next bytes, and returns whether the value is larger or deeper than any valid response. */
  exceeds(bytes: Uint8Array): boolean {
    for (const byte of bytes) {
      if (this.#isString) this.#readString(byte)
      else if (byte === LIST || byte === OBJECT) {
        this.#parts += 1
        this.#depth += 1
        if (this.#depth > MAX_DEPTH) return true
      } else if (this.#depth > 0) this.#readValue(byte)
      if (this.#parts > this.#maxParts || this.#items > this.#maxItems) return true
    }
    return false
  }

  #readString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    // No text continues after the end of a line.
    else if (byte === QUOTE || byte === LINE_FEED || byte === CARRIAGE_RETURN) this.#isString = false
  }

  #readValue(byte: number): void {
    if (byte === QUOTE) this.#isString = true
    else if (byte === COMMA) this.#items += 1
    else if (byte === COLON) this.#parts += 1
    else if (byte === LIST_END || byte === OBJECT_END) {
      this.#depth -= 1
      if (this.#depth === 0) this.#parts = this.#items = 0
    }
  }
}

/** Whether an event is larger or deeper than any valid one. A short event cannot be. */
export function isExcessiveEvent(data: string): boolean {
  return data.length > 2 * MAX_DEPTH && new JsonGauge(MAX_EVENT_PARTS).exceeds(Buffer.from(data))
}
