import { describe, expect, it } from 'vitest'
import { withoutFence } from './response-schema.ts'

describe('Code fence removal', () => {
  it.each([
    ['{"a": 1}', '{"a": 1}'],
    ['```json\n{"a": 1}\n```', '{"a": 1}\n'],
    [' \n ```  \n\n{\n}\n\n ``` \n', '\n{\n}\n\n'],
    ['``` json \n1\n```', '1\n'],
    ['```\n```', ''],
  ])('returns the content of the code fence in %j', (text, inside) => expect(withoutFence(text)).toBe(inside))

  it.each(['```', '```json', '``````', '```json {}\n```', '```yaml\na: 1\n```', '```\n{}```', '```\n{}', '{}\n```', 'so:\n```\n{}\n```'])(
    'leaves %j, which has no fence, unchanged',
    (text) => expect(withoutFence(text)).toBe(text),
  )

  it.each(['\n', ' ', '`', '```\n', ' \n'])('reads a megabyte of %j in linear time', (piece) => {
    for (const text of [`\`\`\`${piece.repeat(1_000_000 / piece.length)}`, `\`\`\`json\n${piece.repeat(1_000_000 / piece.length)}x`]) {
      const begun = performance.now()
      withoutFence(text)
      expect(performance.now() - begun).toBeLessThan(1_000)
    }
  })
})
