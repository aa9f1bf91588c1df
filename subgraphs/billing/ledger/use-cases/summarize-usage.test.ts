import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storesAndMongo } from '../../../../test/support/document-stores.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { audit } from '../../test-support/audit.ts'
import { createCard, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { NOTHING } from '../domain/money.ts'
import type { Operation } from '../domain/usage.ts'
import { placeHold } from '../holds/place-hold.ts'
import { settleHold } from '../holds/settle-hold.ts'
import { type SummaryInput, summarizeUsage } from './summarize-usage.ts'

const HOUR_MS = 3_600_000
/** A token costs 1 nano-USD. */
const RATE_CARD = createCard({
  inputTokens: 1_000_000n,
  cachedInputTokens: 1_000_000n,
  cacheWriteTokens: 1_000_000n,
  outputTokens: 1_000_000n,
})

for (const { name, open } of await storesAndMongo('Usage summary'))
  describe(`Usage summary on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    let owner: Principal
    beforeAll(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
      owner = await fundedOrganization(deps, 1_000_000n)
      // 08:00 of the 21st, then 20:00, then 08:00 of the 22nd.
      for (const amount of [1, 10, 100]) {
        await use('key_a', 'gpt', 'chat_completion', amount)
        await use('key_a', 'e5', 'embedding', 2 * amount)
        await use('key_b', 'gpt', 'chat_completion', 4 * amount)
        clock.advance(12 * HOUR_MS)
      }
      const otherOwner = await fundedOrganization(deps, 1_000_000n)
      await use('key_a', 'gpt', 'chat_completion', 7_777, otherOwner)
    })
    afterAll(async () => {
      await deps.pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })

    async function use(apiKeyId: string, modelId: string, operation: Operation, tokens: number, by = owner): Promise<void> {
      const id = deps.ids('hold')
      const principal = { ...by, apiKeyId }
      const call = { modelId, operation, requestId: 'r', rateCard: RATE_CARD, ttlSeconds: 60 }
      await placeHold(deps, principal, { id, ...call, ceiling: { ...NOTHING, inputTokens: tokens } })
      await settleHold(deps, principal, id, { ...NOTHING, cacheWriteTokens: tokens }, 'provider')
    }

    const summary = (input: Partial<SummaryInput> = {}) => summarizeUsage(deps, owner.organizationId, { groupBy: [], ...input })
    const day = (date: number) => new Date(Date.UTC(2026, 10, date))
    const hour = (date: number, hours: number) => new Date(Date.UTC(2026, 10, date, hours))

    it('is the sum of the records immediately', async () => {
      const { total, groups } = await summary()
      expect(total).toMatchObject({ calls: 9n, amount: 777n, quantities: { cacheWriteTokens: 777n, inputTokens: 0n } })
      expect(groups).toMatchObject([{ modelId: null, apiKeyId: null, day: null, operation: null, amount: 777n }])
      await audit(deps, owner.organizationId)
    })

    it.each<[string, Partial<SummaryInput>, readonly object[]]>([
      [
        'model, the most expensive first',
        { groupBy: ['model'] },
        [
          { modelId: 'gpt', amount: 555n, calls: 6n },
          { modelId: 'e5', amount: 222n },
        ],
      ],
      [
        'key',
        { groupBy: ['key'] },
        [
          { apiKeyId: 'key_b', amount: 444n },
          { apiKeyId: 'key_a', amount: 333n },
        ],
      ],
      [
        'day, the oldest first',
        { groupBy: ['day'] },
        [
          { day: day(21), amount: 77n },
          { day: day(22), amount: 700n },
        ],
      ],
      [
        'operation',
        { groupBy: ['operation'] },
        [
          { operation: 'chat_completion', amount: 555n },
          { operation: 'embedding', amount: 222n },
        ],
      ],
      [
        'several at once',
        { groupBy: ['day', 'key'], modelId: 'gpt' },
        [
          { day: day(21), apiKeyId: 'key_b', amount: 44n, modelId: null },
          { day: day(21), apiKeyId: 'key_a', amount: 11n },
          { day: day(22), apiKeyId: 'key_b', amount: 400n },
          { day: day(22), apiKeyId: 'key_a', amount: 100n },
        ],
      ],
      ['hour, the last 24 of them', { groupBy: ['hour'] }, [{ hour: hour(22, 8), amount: 700n, day: null }]],
      [
        'hour and model, from the first hour on and up to the last',
        { groupBy: ['hour', 'model'], since: hour(21, 8), until: hour(22, 8) },
        [
          { hour: hour(21, 8), modelId: 'gpt', amount: 5n, calls: 2n },
          { hour: hour(21, 8), modelId: 'e5', amount: 2n, calls: 1n },
          { hour: hour(21, 20), modelId: 'gpt', amount: 50n },
          { hour: hour(21, 20), modelId: 'e5', amount: 20n },
        ],
      ],
      [
        'hour of one key and model',
        { groupBy: ['hour', 'day'], apiKeyId: 'key_b', modelId: 'gpt' },
        [{ hour: hour(22, 8), day: day(22), amount: 400n }],
      ],
      ['one key', { apiKeyId: 'key_a' }, [{ amount: 333n }]],
      ['one key and model', { apiKeyId: 'key_a', modelId: 'e5' }, [{ amount: 222n }]],
      ['one operation', { operation: 'embedding' }, [{ amount: 222n }]],
      ['one day', { since: day(21), until: day(22) }, [{ amount: 77n }]],
      ['no day of the period', { since: day(1), until: day(21) }, []],
    ])('by %s', async (_name, input, expected) => {
      const { groups } = await summary(input)
      expect(groups).toHaveLength(expected.length)
      expect(groups).toMatchObject(expected)
    })

    it.each<[string, Partial<SummaryInput>, string]>([
      ['an hour', { since: new Date(day(21).getTime() + HOUR_MS) }, 'filter.since'],
      ['half an hour', { groupBy: ['hour'], since: new Date(hour(21, 8).getTime() + HOUR_MS / 2) }, 'filter.since'],
      ['more than a week by hour', { groupBy: ['hour'], since: day(14), until: hour(21, 1) }, 'filter.since'],
      ['an empty period', { since: day(21), until: day(21) }, 'filter.until'],
      ['more than a year', { since: new Date(Date.UTC(2025, 10, 20)), until: day(22) }, 'filter.since'],
    ])('refuses %s', async (_name, input, param) => {
      await expect(summary(input)).rejects.toMatchObject({ code: 'unsupported_value', param })
    })
  })
