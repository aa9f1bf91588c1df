import { describe, expect, it } from 'vitest'
import { draftOf, inputOf, NEW_KEY, problemsOf } from './draft.ts'

describe('API key form', () => {
  it('has no limits where a field is empty', () => {
    expect(inputOf({ ...NEW_KEY, name: ' Website ' })).toEqual({
      name: 'Website',
      scopes: ['INFERENCE', 'KNOWLEDGE_READ', 'KNOWLEDGE_WRITE'],
      modelAllowlist: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
      spendLimit: null,
      expiresAt: null,
    })
  })

  it('accepts Arabic-Indic digits', () => {
    const draft = { ...NEW_KEY, name: 'موقع', requestsPerMinute: '٦٠', spendAmount: '١٢٫٥' }
    expect(problemsOf(draft)).toEqual({})
    expect(inputOf(draft)).toMatchObject({ requestsPerMinute: 60, spendLimit: { amount: '12.5', period: 'MONTH' } })
  })

  it('reports errors by field', () => {
    const now = new Date('2026-12-01T12:00:00Z')
    expect(
      problemsOf({ ...NEW_KEY, scopes: [], requestsPerMinute: '0', tokensPerMinute: '1.5', spendAmount: '-1', lastDay: '2026-11-01' }, now),
    ).toEqual({
      name: 'nameMissing',
      scopes: 'scopesMissing',
      requestsPerMinute: 'notWhole',
      tokensPerMinute: 'notWhole',
      spendAmount: 'notAmount',
      lastDay: 'dayPast',
    })
    expect(problemsOf({ ...NEW_KEY, name: '🔑'.repeat(100) })).toEqual({})
    expect(problemsOf({ ...NEW_KEY, name: '🔑'.repeat(101) })).toEqual({ name: 'nameLong' })
  })

  it('round-trips an unchanged key', () => {
    const key = {
      id: 'key_1',
      name: 'Website',
      last4: 'abcd',
      scopes: ['INFERENCE' as const],
      modelAllowlist: ['extractive'],
      requestsPerMinute: 60,
      tokensPerMinute: null,
      lastUsedAt: null,
      expiresAt: inputOf({ ...NEW_KEY, lastDay: '2030-02-28' }).expiresAt,
      revokedAt: null,
      createdAt: '2026-11-01T00:00:00Z',
      spendLimit: { amount: '12.5', period: 'DAY' as const, spent: '0', held: '0', resetsAt: null },
      spent: null,
    }
    const { name, scopes, modelAllowlist, requestsPerMinute, tokensPerMinute, expiresAt } = key
    expect(inputOf(draftOf(key))).toEqual({
      name,
      scopes,
      modelAllowlist,
      requestsPerMinute,
      tokensPerMinute,
      spendLimit: { amount: '12.5', period: 'DAY' },
      expiresAt,
    })
  })
})
