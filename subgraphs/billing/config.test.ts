import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { apiKeyFrom } from './accounts/domain/api-key.ts'
import { readBillingConfig } from './config.ts'

describe('the configuration of billing', () => {
  it('has defaults', () => {
    expect(readBillingConfig({})).toEqual({
      dataDir: './data',
      mongodb: null,
      bootstrapApiKey: null,
      bootstrapCreditNanoUsd: 100_000_000_000n,
      egressAllowed: new Set(),
      retryBackoffMs: 1_000,
    })
  })

  it('takes what the environment says', () => {
    const key = apiKeyFrom(randomBytes(32))
    const egress = { KIS_EGRESS_ALLOW: 'hooks.internal:8080', KIS_RETRY_BACKOFF_MS: '5' }
    expect(readBillingConfig({ KIS_DATA_DIR: '/d', KIS_BOOTSTRAP_API_KEY: key, KIS_BOOTSTRAP_CREDIT_USD: '0.5', ...egress })).toEqual({
      dataDir: '/d',
      mongodb: null,
      bootstrapApiKey: key,
      bootstrapCreditNanoUsd: 500_000_000n,
      egressAllowed: new Set(['hooks.internal:8080']),
      retryBackoffMs: 5,
    })
  })

  it('reports every problem at once, and never the key', () => {
    const read = () => readBillingConfig({ KIS_BOOTSTRAP_API_KEY: 'kis_live_secret', KIS_BOOTSTRAP_CREDIT_USD: '9000000.01' })
    expect(read).toThrow(/KIS_BOOTSTRAP_API_KEY[\s\S]*KIS_BOOTSTRAP_CREDIT_USD/)
    expect(read).not.toThrow(/secret/)
  })

  for (const credit of ['-1', '1e3', 'ten', '1.0000000001'])
    it(`refuses ${credit} as credit`, () =>
      expect(() => readBillingConfig({ KIS_BOOTSTRAP_CREDIT_USD: credit })).toThrow('KIS_BOOTSTRAP_CREDIT_USD'))
})
