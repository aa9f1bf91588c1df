/** Size of the header, which is the number of tokens. */
const HEADER_BYTES = 4

/**
 * The bytes of each token. Format: the number of tokens, the length of each token in a byte, then the bytes of all
 * tokens.
 */
export class Vocabulary {
  readonly #bytes: Uint8Array
  /** The start of each token, and the end of the last. */
  readonly #starts: Uint32Array

  /**
   * `packed` is a result of `packVocabulary`.
   * @throws {Error} `packed` has another format
   */
  constructor(packed: Uint8Array) {
    const count = packed.length < HEADER_BYTES ? 0 : new DataView(packed.buffer, packed.byteOffset).getUint32(0, true)
    const lengths = packed.subarray(HEADER_BYTES, HEADER_BYTES + count)
    this.#bytes = packed
    this.#starts = new Uint32Array(count + 1)
    this.#starts[0] = HEADER_BYTES + count
    for (const [token, length] of lengths.entries()) this.#starts[token + 1] = this.#starts[token]! + length
    if (count === 0 || this.#starts[count] !== packed.length) throw new Error('the vocabulary is corrupted')
  }

  /** Returns the bytes of a token, which may be a piece of a character. Undefined: there is no such token. */
  find(token: number): Uint8Array | undefined {
    const end = this.#starts[token + 1]
    return token < 0 || end === undefined ? undefined : this.#bytes.subarray(this.#starts[token], end)
  }
}

/** Packs the bytes of tokens, at most 255 of each, into the format of `Vocabulary`. */
export function packVocabulary(tokens: readonly Uint8Array[]): Uint8Array {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(tokens.length)
  return Buffer.concat([header, Uint8Array.from(tokens, ({ length }) => length), ...tokens])
}
