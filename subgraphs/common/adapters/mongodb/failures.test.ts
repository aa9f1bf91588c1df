import { MongoNetworkError } from 'mongodb'
import { expect, it } from 'vitest'
import { ServiceUnavailable } from '../../errors.ts'
import { translated } from './failures.ts'

it.each([
  ['the driver’s', new MongoNetworkError('connection 3 closed')],
  ['the socket’s own, of a write after the other side has ended', Object.assign(new Error('ended by the other party'), { code: 'EPIPE' })],
  ['the socket’s own, of a reset', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
])('takes a broken connection for an outage: %s', (_what, error) => {
  const failure = translated(error, 'wallets', 'The document store')
  expect(failure).toBeInstanceOf(ServiceUnavailable)
  expect((failure as Error).cause).toBe(error)
})

it('leaves a defect as it is', () => {
  const defect = new TypeError('undefined is not a function')
  expect(translated(defect, 'wallets', 'The document store')).toBe(defect)
})
