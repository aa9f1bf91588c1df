import { expect, it } from 'vitest'
import { clientAddress } from './client-address.ts'

it.each([
  ['203.0.114.9', undefined, '203.0.114.9'],
  ['203.0.114.9', '10.0.0.1', '203.0.114.9'],
  ['127.0.0.1', undefined, '127.0.0.1'],
  ['127.0.0.1', '203.0.114.9', '203.0.114.9'],
  ['10.1.2.3', 'anything, 198.18.0.1, 203.0.114.9', '203.0.114.9'],
  ['10.1.2.3', '203.0.114.9, <script>', '10.1.2.3'],
  ['::1', '2001:db8::1', '2001:db8::1'],
])('a request of %s with x-forwarded-for %s comes from %s', (remoteAddress, forwarded, expected) => {
  const request = { socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }
  expect(clientAddress(request as unknown as Parameters<typeof clientAddress>[0])).toBe(expected)
})
