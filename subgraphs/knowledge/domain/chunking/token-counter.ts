/**
 * Gives the tokens of each text, with or without special tokens. Sums are only estimates; guaranteed limits are
 * counted.
 */
export type CountTokens = (texts: readonly string[]) => Promise<readonly number[]>

/**
 * Most characters of a token. A text of more counts as more tokens, because some tokenizers take white space and
 * zero-width characters for nothing, and a passage of a few words could have a million of them. Passages that people
 * write have 2 to 9, a deeply indented line of code up to 30.
 */
export const MAX_CHARS_PER_TOKEN = 32
/** Texts in one call of the tokenizer. */
const MAX_BATCH_TEXTS = 2_048
/** Characters in one call, so that a batch takes milliseconds and the signal is checked between two. */
const MAX_BATCH_CHARS = 256 * 1024
/** Characters processed before the event loop gets its turn: about 10 ms of segmenting. */
const BREATH_CHARS = 64 * 1024

/** Counts in batches, and lets the process do other work in between. */
export class TokenCounter {
  readonly #countTokens: CountTokens
  readonly #signal: AbortSignal
  #worked = 0

  constructor(countTokens: CountTokens, signal: AbortSignal) {
    this.#countTokens = countTokens
    this.#signal = signal
  }

  /**
   * In the order of the texts, each at least a token for every `MAX_CHARS_PER_TOKEN`. Empty ones have no tokens, and are
   * not counted.
   */
  async count(texts: readonly string[]): Promise<readonly number[]> {
    const counts = new Array<number>(texts.length).fill(0)
    let batch: number[] = []
    let chars = 0
    const flush = async () => {
      if (batch.length === 0) return
      this.#signal.throwIfAborted()
      const found = await this.#countTokens(batch.map((index) => texts[index]!))
      batch.forEach((index, at) => {
        counts[index] = Math.max(found[at]!, Math.ceil(texts[index]!.length / MAX_CHARS_PER_TOKEN))
      })
      batch = []
      chars = 0
    }
    for (const [index, text] of texts.entries()) {
      if (text === '') continue
      if (batch.length === MAX_BATCH_TEXTS || chars + text.length > MAX_BATCH_CHARS) await flush()
      batch.push(index)
      chars += text.length
    }
    await flush()
    return counts
  }

  /**
   * Call it after processing this many characters.
   * @throws the reason of the aborted signal
   */
  async breathe(chars: number): Promise<void> {
    this.#worked += chars
    if (this.#worked < BREATH_CHARS) return
    this.#worked = 0
    await new Promise((resolve) => setImmediate(resolve))
    this.#signal.throwIfAborted()
  }
}
