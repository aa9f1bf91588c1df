import { expect, it } from 'vitest'
import { JsonGauge } from './json-gauge.ts'

const MAX_PARTS = 1_000
const exceeds = (text: string, size = text.length) => {
  const gauge = new JsonGauge(MAX_PARTS)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) if (gauge.exceeds(bytes.subarray(at, at + size))) return true
  return false
}
const list = (item: string, count: number) => `[${Array(count).fill(item).join(',')}]`

it.each([
  ['a list with the maximum number of objects', list('{}', MAX_PARTS - 1), false],
  ['a list with one object too many', list('{}', MAX_PARTS), true],
  ['fields', `{${list('"a":1', MAX_PARTS).slice(1, -1)}}`, true],
  ['numbers', list('1', 1_000_000), false],
  ['more numbers than vectors have', list('1', 10_000_002), true],
  ['500 levels', `${'['.repeat(500)}${']'.repeat(500)}`, false],
  ['501 levels', '['.repeat(501), true],
  ['an object with a text of brackets', JSON.stringify({ a: `\\"\\\\${'[{,:'.repeat(5_000)}`, b: '\\' }), false],
  ['values one after the other', `data: ${list('{}', 900)}\n\n`.repeat(20), false],
  ['values after an unclosed string', `: ["\n\ndata: ${list('{}', MAX_PARTS)}\n\n`, true],
])('decides for %s whether it exceeds the limit', (_name, text, isTooMuch) => {
  expect(exceeds(text)).toBe(isTooMuch)
})

it('counts across chunks that are split anywhere', () => {
  const text = JSON.stringify({ a: `\\"${'[{'.repeat(5_000)}`, b: Array(MAX_PARTS - 4).fill({}) })
  for (const size of [1, 2, 3, 7]) expect(exceeds(text, size)).toBe(false)
  for (const size of [1, 2, 3, 7]) expect(exceeds(text.replace('{}', '{},{}'), size)).toBe(true)
})
