/**
 * Returns the token count of each text, with or without special tokens. Sums of counts are estimates: count a whole
 * text where a limit must hold.
 */
export type CountTokens = (texts: readonly string[]) => Promise<readonly number[]>

/**
 * Maximum characters per token. A longer text counts as more tokens, because some tokenizers ignore white space and
 * zero-width characters: a chunk of a few words could have a million of them. Ordinary text has 2 to 9 characters per
 * token, a deeply indented line of code up to 30.
 */
export const MAX_CHARS_PER_TOKEN = 32
/** Maximum texts per call of the tokenizer. */
const MAX_BATCH_TEXTS = 2_048
/** Maximum characters per call. A batch then takes milliseconds, and the signal is checked between batches. */
const MAX_BATCH_CHARS = 256 * 1024
/** Characters processed between event-loop ticks: about 10 ms of segmenting. */
const BREATH_CHARS = 64 * 1024

/** Counts tokens in batches and yields to the event loop between them. */
export class TokenCounter {
  readonly #countTokens: CountTokens
  readonly #signal: AbortSignal
  #worked = 0

  constructor(countTokens: CountTokens, signal: AbortSignal) {
    this.#countTokens = countTokens
    this.#signal = signal
  }

  /**
   * Returns counts in the order of the texts, each at least one token per `MAX_CHARS_PER_TOKEN` characters. Empty texts
   * have 0 tokens and are not sent to the tokenizer.
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
   * Yields to the event loop when enough characters were processed. Call it after processing `chars` characters.
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
