import { describe, expect, it } from 'vitest'
import { parseLimitedJson } from './limited-json.ts'

const tooMany = expect.objectContaining({ code: 'payload_too_large' })

describe('Limited JSON parser', () => {
  it.each([
    ['a long conversation', { messages: Array.from({ length: 2_048 }, () => ({ role: 'user', content: '{"a": [1, 2]}\\"' })) }],
    ['300,000 tokens', { input: [Array.from({ length: 300_000 }, (_, i) => i)] }],
    ['one long text of brackets and quotes', { text: '[{":,'.repeat(500_000) }],
    ['texts that end with backslashes', { a: '\\'.repeat(200_001), b: '\\\\"'.repeat(100_000), c: '"' }],
    ['Arabic', { text: 'وثيقة "عربية"، '.repeat(50_000) }],
  ])('accepts %s', (_what, value) => {
    expect(parseLimitedJson(JSON.stringify(value))).toEqual(value)
  })

  it.each([
    ['empty lists', `[${'[],'.repeat(700_000)}0]`],
    ['items', `[${'0,'.repeat(700_000)}0]`],
    ['fields', `{${Array.from({ length: 101_000 }, (_, i) => `"${i}":0`).join()}}`],
    ['nested lists', '['.repeat(700_000)],
    ['items after a text that ends with backslashes', `["${'\\\\'.repeat(100)}",${'0,'.repeat(700_000)}0]`],
    ['items after a quote in a text', `["\\"",${'0,'.repeat(700_000)}0]`],
  ])('refuses too many %s, without parsing them', (_what, text) => {
    expect(() => parseLimitedJson(text)).toThrow(tooMany)
  })

  it('leaves invalid JSON to the parser', () => {
    expect(() => parseLimitedJson(`"${'x'.repeat(200_000)}`)).toThrow(SyntaxError)
    expect(() => parseLimitedJson('')).toThrow(SyntaxError)
  })
})
