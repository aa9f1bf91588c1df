import { expect, it } from 'vitest'
import { toCode } from './code.ts'

it.each([
  ['  Café — menu ', 'cafe-menu'],
  ['', ''],
  ['سياسات hr', 'hr'],
])('makes a code of %j', (name, code) => {
  expect(toCode(name)).toBe(code)
})

it('gives a name without Latin letters a code of its own', () => {
  expect(toCode('سياسات التوظيف', () => 0)).toBe('collection-00000')
  expect(toCode('٢٠٢٦ 2026', () => 0.5)).toMatch(/^collection-[a-z0-9]{5}$/)
})
