import { describe, expect, it } from 'vitest'
import type { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { EngineErrors, findVendorError } from './engine-errors.ts'

const KEY = '0123456789abcdefOPERATOR'
const said: (string | null)[] = []
const errors = new EngineErrors('acme', [KEY, 'acme-host.test:8443'], systemClock, (_fault, words) => void said.push(words))

/** Errors in the shapes of the vendors, each with a secret in every field. */
const SHAPES: readonly ((secret: string) => unknown)[] = [
  (secret) => ({ error: { message: `no ${secret}`, type: secret, param: `x.${secret}`, code: secret, inner: { message: secret } } }),
  (secret) => ({ error: { message: `no ${secret}`, type: `${secret}_error` } }),
  (secret) => ({ object: 'error', message: `no ${secret}`, param: secret, code: `bad.${secret}` }),
  (secret) => [{ error: { status: secret, message: secret } }],
  (secret) => ({ error: `no ${secret}` }),
  (secret) => ({ detail: [{ msg: `no ${secret}` }] }),
  (secret) => ({ error: { message: `${'x'.repeat(994)} ${secret}`, code: `${'x'.repeat(50)}${secret}` } }),
]

describe('Vendor error', () => {
  it.each([200, 400, 401, 404, 413, 422, 429, 500, 503, 504, 529])('of status %s has no secret of the operator in any field', (status) => {
    const user = Buffer.from(`user:${KEY}`)
    const encoded = [user.toString('base64'), user.toString('hex'), [...KEY].map((char) => `&#${char.charCodeAt(0)};`).join('')]
    const secrets = [KEY, KEY.toLowerCase(), Buffer.from(KEY).toString('base64'), 'acme-host.test:8443', 'sk-operators-key', ...encoded]
    for (const secret of secrets)
      for (const shape of SHAPES) {
        const body = Buffer.from(JSON.stringify(shape(secret)))
        const found: KisError[] = [
          errors.ofResponse(status, { 'x-amzn-errortype': `${KEY}:http://` }, body),
          errors.ofResponse(status, { 'x-amzn-errortype': `${KEY}:http://` }, Buffer.from('{}')),
          errors.ofEvent(status, shape(secret)),
          errors.ofErrorObject(shape(secret)),
          errors.notAStream(body),
        ]
        const responses = JSON.stringify(found.map((error) => [error.message, error.extensions])) + said.join()
        // Half a secret counts as a secret.
        for (const part of [secret, KEY]) expect(responses.toLowerCase().includes(part.slice(0, 5).toLowerCase())).toBe(false)
      }
  })

  it.each(['bad code', 'a\u202eb', '<script>', 'x'.repeat(65), 'a:b', 'رمز', ''])('removes a code like %j', (code) => {
    for (const error of [errors.ofEvent(500, { error: { code } }), errors.ofErrorObject({ error: { code } })])
      expect(error.vendorCode).toBeNull()
  })

  it.each(['slow_down', 'DeploymentNotFound', 'rate-limit.v2', 1301])('preserves a code like %j', (code) => {
    expect(errors.ofEvent(500, { error: { code } }).vendorCode).toBe(String(code))
  })

  it.each(['two words', 'a/b', 'x'.repeat(65), '<b>', '', 7])('removes a parameter like %j', (param) => {
    for (const status of [400, 422]) expect(errors.ofEvent(status, { error: { message: 'no', param } }).param).toBeNull()
  })

  it.each(['messages[0].content', 'top_k', 'response_format'])('preserves a parameter like %j', (param) => {
    expect(errors.ofEvent(400, { error: { message: 'no', param } }).param).toBe(param)
  })

  it('gets a generic message if its own has the key in another encoding', () => {
    const message = `Refused: ${Buffer.from(`user:${KEY}`).toString('base64')}`
    expect(errors.ofEvent(400, { error: { message } }).message).toBe('The engine `acme` refused the request as invalid.')
    expect(errors.ofErrorObject({ error: { message } }).message).toBe('The engine `acme` failed.')
  })

  it('is found beside choices and in one of them', () => {
    expect(findVendorError({ error: { code: 'a' }, choices: [] })).toEqual({ error: { code: 'a' }, choices: [] })
    expect(findVendorError({ choices: [{ delta: {} }, { error: { code: 'b' } }] })).toEqual({ error: { code: 'b' } })
    expect(findVendorError({ choices: [{ delta: {}, finish_reason: 'error' }] })).toEqual({ error: {} })
    for (const body of [{ choices: [{ error: null }, null] }, { error: null, choices: {} }, {}]) expect(findVendorError(body)).toBeNull()
  })
})
