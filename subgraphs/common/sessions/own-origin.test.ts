import { expect, it } from 'vitest'
import { isSameOrigin, originOf } from './own-origin.ts'

const of = (headers: Record<string, string | undefined>) => originOf(headers)

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
])('the host %s appears in no example', (host) => {
  expect(of({ host })).toBe('')
})

it('a proxy sets the protocol of the reader, and nothing else', () => {
  expect(of({ host: 'a.example', 'x-forwarded-proto': 'https' })).toBe('https://a.example')
  expect(of({ host: 'a.example', 'x-forwarded-proto': 'javascript' })).toBe('http://a.example')
})

it.each([
  ['the page itself', { 'sec-fetch-site': 'same-origin', origin: 'https://a.example' }, true],
  ['the page itself, by GET', { 'sec-fetch-site': 'same-origin' }, true],
  ['an older browser', { origin: 'https://a.example' }, true],
  ['an older browser, by GET', {}, false],
  ['the address bar', { 'sec-fetch-site': 'none' }, false],
  ['another subdomain of the site', { 'sec-fetch-site': 'same-site', origin: 'https://b.example' }, false],
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://a.example' }, false],
  ['an http page', { origin: 'http://a.example' }, false],
  ['another port', { origin: 'https://a.example:444' }, false],
  ['a sandboxed page', { origin: 'null' }, false],
  ['a page with a forged header', { 'sec-fetch-site': 'same-origin', origin: 'https://b.example' }, false],
  ['a client that is no browser', { 'sec-fetch-site': 'Same-Origin' }, false],
])('a request of %s is same-origin: %s', (_what, headers, expected) => {
  expect(isSameOrigin({ host: 'a.example', 'x-forwarded-proto': 'https', ...headers })).toBe(expected)
})
