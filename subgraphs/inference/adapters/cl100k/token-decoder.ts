import { readFile } from 'node:fs/promises'
import type { TokenDecoder } from '../../ports/token-decoder.ts'
import { Vocabulary } from './vocabulary.ts'

const FILE = new URL('../../../../models/cl100k/vocabulary.bin', import.meta.url)

/** Decodes tokens of `cl100k_base`. Its vocabulary, 1 MB, is loaded with the first call. */
export function createTokenDecoder(): TokenDecoder {
  let loading: Promise<Vocabulary> | undefined
  return {
    async decode(tokens) {
      loading ??= readFile(FILE).then((packed) => new Vocabulary(packed))
      const vocabulary = await loading
      const pieces: Uint8Array[] = []
      for (const [index, token] of tokens.entries()) {
        const piece = vocabulary.find(token)
        if (!piece) return { unknownAt: index }
        pieces.push(piece)
      }
      return { text: Buffer.concat(pieces).toString() }
    },
  }
}
