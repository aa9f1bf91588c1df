import { readFile } from 'node:fs/promises'
import { LRUCache } from 'lru-cache'
import { Unigram } from './unigram.ts'

/** Words whose tokens are cached, about 20 MB. A text of a million words has about this many different ones. */
const MAX_REMEMBERED = 50_000
const MAX_REMEMBERED_LENGTH = 64

/**
 * Longest word in UTF-16 units. A longer run without white space is cut, because the tokenizer processes a whole word
 * at a time (16,384 take 50 ms).
 */
const MAX_WORD_LENGTH = 16_384

/**
 * Characters that the model's normalizer replaces with a space (the first `Replace` of tokenizer.json), and the space
 * itself.
 */
const SPACES = /[\t\n\f\r \u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]+/

/** Characters that the normalizer removes (the second `Replace`). */
const LEFT_OUT = /[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]/g
/** Texts that are tokens by themselves, with their ids. */
const SPECIAL: ReadonlyMap<string, number> = new Map([
  ['<s>', 0],
  ['<pad>', 1],
  ['</s>', 2],
  ['<unk>', 3],
])
const AROUND_SPECIAL = new RegExp(`(${[...SPECIAL.keys()].join('|')})`)
/** Stands for the space in pieces, and precedes each word. */
const SPACE = '▁'

/**
 * The model's tokenizer, word by word, as `tokenizer.json` describes it. No piece of its vocabulary crosses a space, so
 * the tokens of a text are those of its words. Caching them makes running text several times faster.
 */
export class WordTokenizer {
  readonly #unigram: Unigram
  readonly #remembered = new LRUCache<string, readonly number[]>({ max: MAX_REMEMBERED })

  private constructor(unigram: Unigram) {
    this.#unigram = unigram
  }

  /** Reads `vocabulary.bin` of a model's folder. */
  static async load(directory: URL): Promise<WordTokenizer> {
    // A copy, because a short file may be part of a larger buffer, at any offset.
    return new WordTokenizer(new Unigram(Uint8Array.from(await readFile(new URL('vocabulary.bin', directory)))))
  }

  /** The `TRAITS` of each token. */
  get traits(): Uint8Array {
    return this.#unigram.traits
  }

  /** Returns the tokens of the text, without special tokens. */
  tokens(text: string): number[] {
    const tokens: number[] = []
    for (const word of splitWords(text)) for (const token of this.#wordTokens(word)) tokens.push(token)
    return tokens
  }

  count(text: string): number {
    let count = 0
    for (const word of splitWords(text)) count += this.#wordTokens(word).length
    return count
  }

  #wordTokens(word: string): readonly number[] {
    const known = this.#remembered.get(word)
    if (known) return known
    const tokens = word.split(AROUND_SPECIAL).flatMap((part) => this.#partTokens(part))
    if (word.length <= MAX_REMEMBERED_LENGTH) this.#remembered.set(word, tokens)
    return tokens
  }

  #partTokens(part: string): readonly number[] {
    const text = SPECIAL.has(part) ? part : part.replace(LEFT_OUT, '').normalize('NFKC').replace(/ {2,}/g, ' ')
    if (text === '') return []
    const special = SPECIAL.get(text)
    if (special !== undefined) return [special]
    const spaced = text.replaceAll(' ', SPACE)
    return this.#unigram.split(spaced.startsWith(SPACE) ? spaced : SPACE + spaced)
  }
}

function* splitWords(text: string): Generator<string> {
  for (const word of text.split(SPACES)) {
    for (let from = 0; from < word.length; from += MAX_WORD_LENGTH) yield word.slice(from, from + MAX_WORD_LENGTH)
  }
}
