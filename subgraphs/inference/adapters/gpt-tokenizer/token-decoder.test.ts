import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import { expect, it } from 'vitest'
import { createTokenDecoder } from './token-decoder.ts'

const decoder = createTokenDecoder()

it('gives the text of tokens, in every script', async () => {
  for (const text of ['Annual leave is thirty days.', 'الإجازة السنوية ثلاثون يوما.', '🌴 你好\n\t'])
    expect(await decoder.decode(encode(text))).toEqual({ text })
})

it('replaces a character that the tokens cut', async () => {
  const tokens = encode('🌴')
  expect(tokens.length).toBeGreaterThan(1)
  expect(await decoder.decode(tokens.slice(0, 1))).toEqual({ text: '\ufffd' })
  expect(await decoder.decode(tokens.slice(1))).toEqual({ text: '\ufffd\ufffd' })
})

it.each([100_256, 100_277, 2 ** 31 - 1])('names the position of %s, which is no token', async (unknown) => {
  expect(await decoder.decode([9906, unknown, 9906])).toEqual({ unknownAt: 1 })
})
