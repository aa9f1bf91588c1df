import { describe, expect, it } from 'vitest'
import { RequestFacts } from './request-facts.ts'

const charge = { inputTokens: 30, outputTokens: 5, costNanoUsd: 40_000n }

describe('Request facts', () => {
  it('pass from process to process once, and add up at the receiver', () => {
    const [gateway, restAdapter] = [new RequestFacts(true), new RequestFacts(true)]
    for (const each of [gateway, restAdapter]) each.start('req_1')
    gateway.report('req_1', { organizationId: 'org_1', apiKeyId: 'key_1' })
    gateway.spent('req_1', charge)
    restAdapter.merge('req_1', gateway.drainUnsent('req_1'))
    expect(gateway.drainUnsent('req_1')).toBeUndefined()
    gateway.spent('req_1', charge)
    restAdapter.merge('req_1', gateway.drainUnsent('req_1'))
    expect(restAdapter.end('req_1')).toMatchObject({
      organizationId: 'org_1',
      apiKeyId: 'key_1',
      inputTokens: 60,
      outputTokens: 10,
      costNanoUsd: 80_000n,
    })
  })

  it('include the first error and the first operation', () => {
    const requests = new RequestFacts(true)
    requests.start('req_1')
    requests.report('req_1', { error: 'insufficient_quota' })
    requests.report('req_1', { error: 'internal', operation: 'query A' })
    expect(requests.end('req_1')).toMatchObject({ error: 'insufficient_quota', operation: 'query A' })
  })

  it('are stored until the last operation of the request has ended, and no longer', () => {
    const requests = new RequestFacts(true)
    for (let i = 0; i < 2; i++) requests.start('req_1')
    expect(requests.end('req_1')).toBeDefined()
    requests.spent('req_1', charge)
    expect(requests.end('req_1')).toMatchObject(charge)
    requests.spent('req_1', charge)
    expect(requests.end('req_1')).toBeUndefined()
  })

  it('list a limited number of fetches, and count all', () => {
    const requests = new RequestFacts(true)
    requests.start('req_1')
    for (let i = 0; i < 50; i++) requests.fetched('req_1', 'billing: Read', performance.now())
    const { fetches, fetchCount } = requests.end('req_1')!
    expect([fetches.length, fetchCount]).toEqual([20, 50])
  })

  it('are not stored while nobody needs them, nor read from an overlong text', () => {
    const off = new RequestFacts(false)
    off.start('req_1')
    expect(off.end('req_1')).toBeUndefined()
    const requests = new RequestFacts(true)
    requests.start('req_1')
    requests.merge('req_1', JSON.stringify({ organizationId: 'x'.repeat(3_000) }))
    expect(requests.end('req_1')).not.toHaveProperty('organizationId')
  })
})
