import { readFileSync } from 'node:fs'
import table from 'gpt-tokenizer/bpeRanks/cl100k_base'
import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import { expect, it } from 'vitest'
import { createTokenDecoder } from './token-decoder.ts'
import { Vocabulary } from './vocabulary.ts'

const packed = readFileSync(new URL('../../../../models/cl100k/vocabulary.bin', import.meta.url))
const decoder = createTokenDecoder()

it('decodes tokens to text, in every script', async () => {
  for (const text of ['Annual leave is thirty days.', 'الإجازة السنوية ثلاثون يوما.', '🌴 你好\n\t'])
    expect(await decoder.decode(encode(text))).toEqual({ text })
})

it('replaces a character that the tokens split', async () => {
  const tokens = encode('🌴')
  expect(tokens.length).toBeGreaterThan(1)
  expect(await decoder.decode(tokens.slice(0, 1))).toEqual({ text: '\ufffd' })
  expect(await decoder.decode(tokens.slice(1))).toEqual({ text: '\ufffd\ufffd' })
})

it('has every token of the library', () => {
  const vocabulary = new Vocabulary(packed)
  const wrong = [...table.keys()].filter((token) => !Buffer.from(table[token] as string).equals(vocabulary.find(token)!))
  expect(wrong).toEqual([])
  expect(() => new Vocabulary(Buffer.alloc(3))).toThrow('corrupted')
  expect(() => new Vocabulary(packed.subarray(0, 1_000))).toThrow('corrupted')
})

it.each([-1, 0.5, 100_256, 100_277, 2 ** 31 - 1])('names the position of %s, which is not a token', async (unknown) => {
  expect(await decoder.decode([9906, unknown, 9906])).toEqual({ unknownAt: 1 })
})
