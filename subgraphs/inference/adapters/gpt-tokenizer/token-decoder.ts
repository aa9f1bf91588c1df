import type { TokenDecoder } from '../../ports/token-decoder.ts'

/**
 * Reads tokens of `cl100k_base` by the library's table of them (100,000, in 20 MB), which is loaded with the first call,
 * in 0.1 s. The library's own `decode` keeps the rest of a cut character for its next call, which may be anybody's.
 */
export function createTokenDecoder(): TokenDecoder {
  return {
    async decode(tokens) {
      const { default: table } = await import('gpt-tokenizer/bpeRanks/cl100k_base')
      const unknownAt = tokens.findIndex((token) => table[token] === undefined)
      if (unknownAt >= 0) return { unknownAt }
      // An entry is a text, or the bytes of a piece of a character.
      return { text: Buffer.concat(tokens.map((token) => Buffer.from(table[token] as string))).toString() }
    },
  }
}
