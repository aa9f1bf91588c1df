import { MongoNetworkError } from 'mongodb'
import { expect, it } from 'vitest'
import { ServiceUnavailable } from '../../errors.ts'
import { translated } from './failures.ts'

it.each([
  ['an error of the driver', new MongoNetworkError('connection 3 closed')],
  ['an EPIPE of the socket', Object.assign(new Error('ended by the other party'), { code: 'EPIPE' })],
  ['a reset of the socket', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
])('treats a broken connection as an outage: %s', (_what, error) => {
  const failure = translated(error, 'wallets', 'The document store')
  expect(failure).toBeInstanceOf(ServiceUnavailable)
  expect((failure as Error).cause).toBe(error)
})

it('passes on a defect', () => {
  const defect = new TypeError('undefined is not a function')
  expect(translated(defect, 'wallets', 'The document store')).toBe(defect)
})
