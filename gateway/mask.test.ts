import { GraphQLError } from 'graphql'
import { describe, expect, it } from 'vitest'
import { KisError, REQUEST_OVER } from '../subgraphs/common/errors.ts'
import { silentLog } from '../subgraphs/common/process/log.ts'
import { createMask } from './mask.ts'

const mask = createMask(silentLog)
const coded = (code: string, extra: Record<string, unknown> = {}) => ({ extensions: { code, ...extra } })

describe('Errors that leave the gateway', () => {
  for (const { name, error, code, message } of [
    { name: 'of the closed set', error: new KisError('not_found', 'Gone.'), code: 'NOT_FOUND', message: 'Gone.' },
    { name: 'that was thrown and is not an Error', error: 'boom', code: 'INTERNAL' },
    { name: 'that is undefined', error: undefined, code: 'INTERNAL' },
    { name: 'of the network', error: new TypeError('connect ECONNREFUSED 10.0.0.7'), code: 'INTERNAL' },
    { name: 'of a subgraph without a code', error: new GraphQLError('SQL: …', { path: ['a'] }), code: 'INTERNAL' },
    { name: 'with a foreign code', error: new GraphQLError('x', coded('DOWNSTREAM_SERVICE_ERROR')), code: 'INTERNAL' },
    { name: 'thrown in a resolver', error: new GraphQLError('x', { originalError: new Error('x') }), code: 'INTERNAL' },
    {
      name: 'about the operation',
      error: new GraphQLError('Cannot query field "x".'),
      code: 'INVALID_REQUEST',
      message: 'Cannot query field "x".',
    },
    {
      name: 'of Apollo about the request',
      error: new GraphQLError('No query.', coded('BAD_REQUEST')),
      code: 'INVALID_REQUEST',
      message: 'No query.',
    },
    {
      name: 'about too many tokens',
      error: new GraphQLError('Syntax Error: Document contains more that 2000 tokens. Parsing aborted.', coded('GRAPHQL_PARSE_FAILED')),
      code: 'OPERATION_TOO_COMPLEX',
    },
  ]) {
    it(`${name} is ${code}`, () => {
      const masked = mask(error, 'req_1')
      expect(masked.extensions.code).toBe(code)
      if (message) expect(masked.message).toBe(message)
      if (code === 'INTERNAL') expect(JSON.stringify(masked)).not.toMatch(/SQL|10\.0\.0\.7|boom/)
      expect(mask(masked, 'req_1').toJSON()).toEqual(masked.toJSON())
    })
  }

  it('preserve their path and the six keys of their extensions, and lose every other', () => {
    const error = new GraphQLError('No money.', {
      path: ['a', 0],
      ...coded('INSUFFICIENT_QUOTA', {
        param: 'model',
        vendorCode: 'v',
        stacktrace: ['at x'],
        serviceName: 'billing',
        http: { status: 500 },
      }),
    })
    expect(mask(error, 'req_1').toJSON()).toEqual({
      message: 'No money.',
      path: ['a', 0],
      extensions: {
        code: 'INSUFFICIENT_QUOTA',
        type: 'insufficient_quota',
        param: 'model',
        retryAfterMs: null,
        shouldRetry: false,
        vendorCode: 'v',
      },
    })
  })

  it('quote at most 500 characters of a message and of a path', () => {
    for (const error of [
      new GraphQLError('x'.repeat(1_000_000)),
      new KisError('not_found', 'x'.repeat(1_000_000), { param: 'p'.repeat(9_999) }),
    ])
      expect(JSON.stringify(mask(error, 'req_1')).length).toBeLessThan(1_500)
  })

  it('are logged with their cause only when they are defects', () => {
    const logged: unknown[] = []
    const noting = createMask({ ...silentLog, error: (fields: unknown) => void logged.push(fields) } as typeof silentLog)
    const defect = new Error('secret detail')
    noting(new KisError('not_found', 'Gone.'), 'req_1')
    noting(new GraphQLError('Cannot query field "x".'), 'req_1')
    noting(new GraphQLError(REQUEST_OVER.message, { originalError: new GraphQLError('x', { originalError: REQUEST_OVER }) }), 'req_1')
    noting(defect, 'req_2')
    expect(logged).toMatchObject([{ requestId: 'req_2', err: defect }])
  })
})
