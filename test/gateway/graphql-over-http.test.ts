import { auditServer } from 'graphql-http'
import { describe, expect, it } from 'vitest'
import { KEY, startGateway } from './support/start.ts'

/**
 * What Apollo Server 5 does by design: 4xx instead of 200 to what is no valid operation under `application/json`, and
 * no GET without a header that makes browsers ask first. Its own server alone: 55 ok, 3 warnings, no error, 3 notices.
 */
const APOLLO_WARNINGS = ['572B', 'FDE2', '7B9B']
const CSRF_NOTICES = ['5A70', 'D6D5', '6A70']

describe('GraphQL over HTTP', () => {
  it('passes the graphql-http audits without an error, as many as Apollo Server alone', async () => {
    const { url } = await startGateway()
    const fetchFn = (input: string, init: RequestInit = {}) =>
      fetch(input, { ...init, headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${KEY}` } })
    const results = await auditServer({ url, fetchFn })
    const not = results
      .filter(({ status }) => status !== 'ok')
      .map(({ id, status, ...rest }) => ({ id, status, reason: 'reason' in rest && rest.reason }))
    expect(not.filter(({ status }) => status === 'error')).toEqual([])
    expect(not.map(({ id }) => id).filter((id) => ![...APOLLO_WARNINGS, ...CSRF_NOTICES].includes(id))).toEqual([])
    expect(results.length - not.length).toBeGreaterThanOrEqual(55)
  })
})
