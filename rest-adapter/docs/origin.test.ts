import { expect, it } from 'vitest'
import { originOf } from './origin.ts'

const of = (headers: Record<string, string | undefined>) => originOf({ headers, protocol: 'http' })

it.each([
  ['api.example', 'http://api.example'],
  ['127.0.0.1:4000', 'http://127.0.0.1:4000'],
  ['[::1]:4000', 'http://[::1]:4000'],
])('the host %s is reached at %s', (host, origin) => {
  expect(of({ host })).toBe(origin)
})

it.each([
  [undefined],
  [''],
  ['a"; rm -rf ~'],
  ['$(id)'],
  ['a.example/x'],
  ["a'b"],
  ['a b'],
  [`${'a'.repeat(300)}.example`],
  ['user@a.example'],
])('the host %s gets into no example', (host) => {
  expect(of({ host })).toBe('')
})

it('a proxy says by which protocol the reader came, and nothing else', () => {
  expect(of({ host: 'a.example', 'x-forwarded-proto': 'https' })).toBe('https://a.example')
  expect(of({ host: 'a.example', 'x-forwarded-proto': 'javascript' })).toBe('http://a.example')
})
