import { Tokenizer } from '@huggingface/tokenizers'
import { LRUCache } from 'lru-cache'

/** Words whose tokens are cached, about 20 MB. A text of a million words has about this many different ones. */
const MAX_REMEMBERED = 50_000
const MAX_REMEMBERED_LENGTH = 64

/**
 * A run without white space is cut here, in UTF-16 units, because the tokenizer takes a whole word at a time (16,384
 * take 50 ms).
 */
const MAX_WORD_LENGTH = 16_384

/** What the model's normaliser turns into a space (the first `Replace` of tokenizer.json), and the space itself. */
const SPACES = /[\t\n\f\r \u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]+/

/**
 * The model's tokenizer, word by word. No piece of its vocabulary crosses a space, so the tokens of a text are those of
 * its words. Caching them makes running text several times faster.
 */
export class WordTokenizer {
  readonly #tokenizer: Tokenizer
  readonly #remembered = new LRUCache<string, readonly number[]>({ max: MAX_REMEMBERED })

  /** The parsed `tokenizer.json` and `tokenizer_config.json`. */
  constructor(tokenizer: object, config: object) {
    this.#tokenizer = new Tokenizer(tokenizer, config)
  }

  /** The tokens of the text, without marks. Stops after `limit` tokens. */
  tokens(text: string, limit = Number.POSITIVE_INFINITY): number[] {
    const tokens: number[] = []
    for (const word of splitWords(text)) {
      if (tokens.length >= limit) break
      for (const token of this.#wordTokens(word)) tokens.push(token)
    }
    return tokens.length > limit ? tokens.slice(0, limit) : tokens
  }

  count(text: string): number {
    let count = 0
    for (const word of splitWords(text)) count += this.#wordTokens(word).length
    return count
  }

  #wordTokens(word: string): readonly number[] {
    const known = this.#remembered.get(word)
    if (known) return known
    const tokens = this.#tokenizer.encode(word, { add_special_tokens: false }).ids
    if (word.length <= MAX_REMEMBERED_LENGTH) this.#remembered.set(word, tokens)
    return tokens
  }
}

function* splitWords(text: string): Generator<string> {
  for (const word of text.split(SPACES)) {
    for (let from = 0; from < word.length; from += MAX_WORD_LENGTH) yield word.slice(from, from + MAX_WORD_LENGTH)
  }
}
