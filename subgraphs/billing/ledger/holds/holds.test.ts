import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storesAndMongo } from '../../../../test/support/document-stores.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { ServiceUnavailable } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { putSpendLimit } from '../../accounts/use-cases/spend-limit.ts'
import { audit } from '../../test-support/audit.ts'
import { createCard, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { digestIds, usageRecordIdOf } from '../domain/ids.ts'
import { MAX_NANO_USD, NOTHING, type Quantities } from '../domain/money.ts'
import { MAX_OPEN_HOLDS, MAX_PENDING_ENTRIES, type PendingEntry } from '../domain/wallet.ts'
import { creditWallet } from '../use-cases/credit-wallet.ts'
import { followUsage } from '../use-cases/follow-usage.ts'
import { checkpointHold } from './checkpoint-hold.ts'
import { dispatchHold } from './dispatch-hold.ts'
import { type PlaceHoldInput, placeHold } from './place-hold.ts'
import { quoteHolds } from './quote-holds.ts'
import { reapHolds } from './reap-holds.ts'
import { settleHold } from './settle-hold.ts'
import { voidHold } from './void-hold.ts'

const never = new AbortController().signal
const used = (inputTokens: number, outputTokens = 0): Quantities => ({ ...NOTHING, inputTokens, outputTokens })
const RATE_CARD: PlaceHoldInput['rateCard'] = createCard({ inputTokens: 1_000_000n, outputTokens: 1_000_000n })
/** A token costs 1 nano-USD, so that amounts are tokens. */
const call = (id: string, tokens: number, ttlSeconds = 60): PlaceHoldInput => ({
  id,
  operation: 'chat_completion',
  modelId: 'gpt',
  requestId: 'req_1',
  rateCard: RATE_CARD,
  ceiling: used(tokens),
  ttlSeconds,
})
const code = (expected: string) => expect.objectContaining({ code: expected })

const stores = await storesAndMongo('Holds')

for (const { name, open } of stores)
  describe(`Holds on ${name}`, () => {
    let store: DocumentStore
    let clock: ManualClock
    let deps: BillingDeps
    beforeAll(async () => {
      store = await open()
      clock = new ManualClock()
      deps = openBilling(store, clock)
    })
    afterAll(async () => {
      await deps.pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })

    const findWallet = async ({ organizationId }: Principal) => (await deps.collections.wallets.findOne({ _id: organizationId }))!
    const readMoney = async (principal: Principal) => {
      const { available, held } = await findWallet(principal)
      return { available, held }
    }

    it('of 200 concurrent calls, are placed for exactly those that the wallet can pay', async () => {
      const owner = await fundedOrganization(deps, 79n)
      const results = await Promise.allSettled(Array.from({ length: 200 }, () => placeHold(deps, owner, call(deps.ids('hold'), 10 + 1))))
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(7)
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toEqual(code('insufficient_quota'))
      expect(await readMoney(owner)).toEqual({ available: 2, held: 77 })
      await audit(deps, owner.organizationId)
    })

    describe('for OCR pages', () => {
      const pagesOf = (id: string, pages: number): PlaceHoldInput => ({
        ...call(id, 0, 3_600),
        operation: 'ocr',
        rateCard: { ...RATE_CARD, pages: 2_000_000n },
        ceiling: { ...NOTHING, pages },
      })
      const hold = async (by: Principal, pages: number) => {
        const id = deps.ids('hold')
        await placeHold(deps, by, pagesOf(id, pages))
        return id
      }
      const limited = async (ocrPages: number, nanoUsd = 1_000n): Promise<Principal> => {
        const owner = await fundedOrganization(deps, nanoUsd)
        return { ...owner, plan: { ...owner.plan, ocrPages } }
      }
      const pages = async (by: Principal) => (await findWallet(by)).ocr?.pages

      it('fit the monthly limit of the plan, and return the pages that were not read', async () => {
        const owner = await limited(25)
        const first = await hold(owner, 10)
        const second = await hold(owner, 10)
        await expect(hold(owner, 6)).rejects.toMatchObject({
          code: 'insufficient_quota',
          message: expect.stringMatching(/allows 25 pages of OCR a month: 20 are used, 6 more are needed, until \d{4}-\d\d-01T00/),
        })
        expect(await settleHold(deps, owner, first, { ...NOTHING, pages: 7 }, 'counted')).toMatchObject({ charged: 14n, freed: 6n })
        await settleHold(deps, owner, first, { ...NOTHING, pages: 7 }, 'counted')
        await voidHold(deps, owner, second)
        expect(await pages(owner)).toBe(7)
        await hold(owner, 18)
        await expect(hold(owner, 1)).rejects.toEqual(code('insufficient_quota'))
        const { usageRecords } = await audit(deps, owner.organizationId)
        expect(usageRecords).toMatchObject([{ operation: 'ocr', quantities: { pages: 7 }, amount: 14 }])
      })

      it('count no pages where the wallet refuses, and of many concurrent holds are placed for exactly those that fit', async () => {
        const poor = await limited(100, 30n)
        const results = await Promise.allSettled([20, 10, 10, 5, 5].map((each) => hold(poor, each)))
        expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled', 'rejected'])
        expect(await pages(poor)).toBe(15)
        const owner = await limited(30)
        const many = await Promise.allSettled(Array.from({ length: 40 }, () => hold(owner, 1)))
        expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
      })

      it('count from zero each month, and a hold that ends later does not count in the next month', async () => {
        const owner = await limited(10)
        const late = await hold(owner, 10)
        clock.advance(31 * 86_400_000)
        const another = await hold(owner, 10)
        await voidHold(deps, owner, late)
        expect(await pages(owner)).toBe(10)
        await voidHold(deps, owner, another)
        expect(await pages(owner)).toBe(0)
        clock.advance(-31 * 86_400_000)
      })
    })

    it('are quoted at the amount that placing them holds, without a change of the wallet', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const { rateCard, ceiling } = call('unused', 100)
      const tooMuch = { rateCard, ceiling: used(101) }
      const beyondAll = { rateCard: { ...rateCard, inputTokens: MAX_NANO_USD }, ceiling: used(2_000_000_000) }
      expect(await quoteHolds(deps, owner, [{ rateCard, ceiling }, tooMuch, beyondAll])).toEqual([
        { amount: 100n, isCovered: true },
        { amount: 101n, isCovered: false },
        { amount: MAX_NANO_USD * 2_000n, isCovered: false },
      ])
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
      await placeHold(deps, owner, call(deps.ids('hold'), 100))
      expect(await quoteHolds(deps, owner, [{ rateCard, ceiling: used(1) }])).toEqual([{ amount: 1n, isCovered: false }])
      const limited = await fundedOrganization(deps, 100n)
      await putSpendLimit(deps, limited.organizationId, limited.apiKeyId, { amount: 50, period: 'day' })
      expect(
        await quoteHolds(
          deps,
          limited,
          [used(50), used(51)].map((most) => ({ rateCard, ceiling: most })),
        ),
      ).toMatchObject([{ isCovered: true }, { isCovered: false }])
      await expect(quoteHolds(deps, owner, Array(65).fill({ rateCard, ceiling }))).rejects.toEqual(code('array_above_max_length'))
    })

    it('charge what was used and release the rest', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      expect(await placeHold(deps, owner, call(id, 60))).toMatchObject({ amount: 60 })
      expect(await readMoney(owner)).toEqual({ available: 40, held: 60 })
      expect(await dispatchHold(deps, owner, id, used(20))).toMatchObject({ checkpoint: used(20) })
      expect(await settleHold(deps, owner, id, used(20, 5), 'provider')).toEqual({
        id,
        state: 'settled',
        charged: 25n,
        freed: 35n,
        absorbed: 0n,
      })
      expect(await readMoney(owner)).toEqual({ available: 75, held: 0 })
      expect((await audit(deps, owner.organizationId)).entries.map((entry) => entry.kind)).toEqual(['top_up', 'hold', 'settle'])
    })

    it('charge at most their amount, and record the rest as absorbed', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 60))
      expect(await settleHold(deps, owner, id, used(60, 15), 'provider')).toMatchObject({ charged: 60n, absorbed: 15n })
      expect(await readMoney(owner)).toEqual({ available: 40, held: 0 })
      await audit(deps, owner.organizationId)
    })

    it('charge nothing for no usage, and still record it', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 60))
      expect(await settleHold(deps, owner, id, used(0), 'provider')).toMatchObject({ state: 'settled', charged: 0n })
      expect((await audit(deps, owner.organizationId)).usageRecords).toHaveLength(1)
    })

    it('of free models need no balance', async () => {
      const owner = await fundedOrganization(deps, 0n)
      const id = deps.ids('hold')
      expect(await placeHold(deps, owner, call(id, 0))).toMatchObject({ amount: 0 })
      expect(await settleHold(deps, owner, id, used(0), 'counted')).toMatchObject({ charged: 0n })
    })

    it('larger than the wallet are refused, not reduced to it', async () => {
      const owner = await fundedOrganization(deps, 100n)
      await expect(placeHold(deps, owner, call(deps.ids('hold'), 101))).rejects.toEqual(code('insufficient_quota'))
      const dear = { ...call(deps.ids('hold'), 2 ** 31 - 1), rateCard: { ...call('', 0).rateCard, inputTokens: MAX_NANO_USD } }
      await expect(placeHold(deps, owner, dear)).rejects.toEqual(code('insufficient_quota'))
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
    })

    it('that an earlier version ended keep their outcome and their usage record', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const { organizationId } = owner
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 30))
      const { sequence } = await findWallet(owner)
      const first = await settleHold({ ...deps, isExclusive: false }, owner, id, used(10), 'provider')
      const [{ entry }] = (await findWallet(owner)).outbox.filter(({ usage }) => usage) as [PendingEntry]
      expect(entry._id).toBe(digestIds(organizationId, id).entry)
      await deps.pump.drain(organizationId)

      expect(await settleHold(deps, owner, id, used(30), 'counted')).toEqual(first)
      expect(await voidHold(deps, owner, id)).toEqual(first)
      await expect(placeHold(deps, owner, call(id, 30))).rejects.toThrow('has ended')
      await expect(checkpointHold(deps, owner, id, used(1), 60)).rejects.toThrow('has ended')
      const events = followUsage(deps, organizationId, String(sequence))
      expect((await events.next()).value?.record).toMatchObject({ _id: usageRecordIdOf(entry), amount: 10 })
      await events.return?.()
      await audit(deps, organizationId)
    })

    it('keep their first outcome, before and after it is copied out of the outbox', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const [settled, voided] = [deps.ids('hold'), deps.ids('hold')]
      for (const id of [settled, voided]) await placeHold(deps, owner, call(id, 30))
      const first = await Promise.all(Array.from({ length: 5 }, (_, i) => settleHold(deps, owner, settled, used(10 + i), 'provider')))
      for (const outcome of first) expect(outcome).toEqual(first[0])
      const gone = await voidHold(deps, owner, voided)
      for (let round = 0; round < 2; round++) {
        expect(await settleHold(deps, owner, settled, used(30), 'counted')).toEqual(first[0])
        expect(await voidHold(deps, owner, settled)).toEqual(first[0])
        expect(await settleHold(deps, owner, voided, used(30), 'counted')).toEqual(gone)
        await deps.pump.drain(owner.organizationId)
      }
      const { entries, usageRecords } = await audit(deps, owner.organizationId)
      expect(entries).toHaveLength(5)
      expect(usageRecords).toHaveLength(1)
    })

    it('placed again while open are the same hold, and conflict with another amount or after their end', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      const first = await placeHold(deps, owner, call(id, 30))
      expect(await placeHold(deps, owner, call(id, 30))).toEqual(first)
      await expect(placeHold(deps, owner, call(id, 31))).rejects.toEqual(code('idempotency_conflict'))
      await voidHold(deps, owner, id)
      await expect(placeHold(deps, owner, call(id, 30))).rejects.toEqual(code('idempotency_conflict'))
      await deps.pump.drain(owner.organizationId)
      await expect(placeHold(deps, owner, call(id, 30))).rejects.toEqual(code('idempotency_conflict'))
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
      await audit(deps, owner.organizationId)
    })

    it('are refused with an ID that was not issued in the last 60 s or by this service', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const old = deps.ids('hold')
      clock.advance(60_001)
      for (const id of [old, 'hold_1', 'hold_$set', `hold_${'0'.repeat(32)}.x`, deps.ids('use'), ''])
        await expect(placeHold(deps, owner, call(id, 1))).rejects.toEqual(code('invalid_request'))
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
    })

    for (const { what, change, expected, param } of [
      { what: 'too short a duration', change: { ttlSeconds: 9 }, expected: 'integer_below_min_value', param: 'ttlSeconds' },
      { what: 'too long a duration', change: { ttlSeconds: 86_401 }, expected: 'integer_above_max_value', param: 'ttlSeconds' },
      { what: 'a negative quantity', change: { ceiling: used(-1) }, expected: 'integer_below_min_value', param: 'ceiling.inputTokens' },
      {
        what: 'a negative rate',
        change: { rateCard: { ...call('', 0).rateCard, outputTokens: -1n } },
        expected: 'unsupported_value',
        param: 'rateCard.outputTokens',
      },
      { what: 'an overlong model ID', change: { modelId: 'm'.repeat(201) }, expected: 'string_above_max_length', param: 'modelId' },
    ])
      it(`are refused with ${what}`, async () => {
        const owner = await fundedOrganization(deps, 100n)
        await expect(placeHold(deps, owner, { ...call(deps.ids('hold'), 1), ...change })).rejects.toEqual(
          expect.objectContaining({ code: expected, param }),
        )
        expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
      })

    it('of another organization look as if they did not exist, and IDs are scoped to their organization', async () => {
      const [owner, other] = [await fundedOrganization(deps, 100n), await fundedOrganization(deps, 100n)]
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 30))
      for (const attempt of [
        () => dispatchHold(deps, other, id, used(1)),
        () => checkpointHold(deps, other, id, used(1), 60),
        () => settleHold(deps, other, id, used(1), 'provider'),
        () => voidHold(deps, other, id),
      ])
        await expect(attempt()).rejects.toEqual(code('not_found'))
      await placeHold(deps, other, call(id, 40))
      await settleHold(deps, owner, id, used(10), 'provider')
      await settleHold(deps, other, id, used(20), 'provider')
      for (const [principal, available] of [
        [owner, 90],
        [other, 80],
      ] as const) {
        await deps.pump.drain(principal.organizationId)
        expect(await readMoney(principal)).toEqual({ available, held: 0 })
        expect((await audit(deps, principal.organizationId)).usageRecords).toHaveLength(1)
      }
    })

    it('allow the dispatch of their call before they expire, and not after their end', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const [late, ended] = [deps.ids('hold'), deps.ids('hold')]
      await placeHold(deps, owner, call(late, 10, 10))
      await placeHold(deps, owner, call(ended, 10))
      await dispatchHold(deps, owner, ended, used(9))
      expect(await dispatchHold(deps, owner, ended, used(1))).toMatchObject({ checkpoint: used(9) })
      await voidHold(deps, owner, ended)
      clock.advance(10_000)
      for (const id of [late, ended]) await expect(dispatchHold(deps, owner, id, used(1))).rejects.toEqual(code('service_unavailable'))
      await expect(checkpointHold(deps, owner, ended, used(1), 60)).rejects.toEqual(code('service_unavailable'))
    })

    it('that expire end although another wallet cannot be written', async () => {
      const [stuck, owner] = [await fundedOrganization(deps, 100n), await fundedOrganization(deps, 100n)]
      await placeHold(deps, stuck, call(deps.ids('hold'), 10, 10))
      await placeHold(deps, owner, call(deps.ids('hold'), 10, 20))
      clock.advance(20_000)
      const change = deps.writer.change.bind(deps.writer)
      const writer = {
        change: (organizationId: string, ...rest: unknown[]) =>
          organizationId === stuck.organizationId
            ? Promise.reject(new ServiceUnavailable('The wallet'))
            : change(organizationId, ...(rest as [null, () => void])),
      } as unknown as BillingDeps['writer']
      await expect(reapHolds({ ...deps, writer }, never)).rejects.toEqual(code('service_unavailable'))
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
      await reapHolds(deps, never)
      expect(await readMoney(stuck)).toEqual({ available: 100, held: 0 })
    })

    it('that expire are released without a checkpoint, and charged by the highest checkpoint otherwise', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const [quiet, heard, long] = [deps.ids('hold'), deps.ids('hold'), deps.ids('hold')]
      await placeHold(deps, owner, call(long, 5, 3_600))
      await placeHold(deps, owner, call(quiet, 20, 10))
      await placeHold(deps, owner, call(heard, 40, 20))
      await dispatchHold(deps, owner, heard, used(10))
      await checkpointHold(deps, owner, heard, used(10, 7), 20)
      expect(await checkpointHold(deps, owner, heard, used(10, 3), 20)).toMatchObject({ checkpoint: used(10, 7) })
      clock.advance(10_000)
      await reapHolds(deps, never)
      expect(await readMoney(owner)).toEqual({ available: 55, held: 45 })
      clock.advance(10_000)
      await Promise.all([reapHolds(deps, never), reapHolds(deps, never)])
      await reapHolds(deps, never)
      expect(await readMoney(owner)).toEqual({ available: 78, held: 5 })
      expect(await settleHold(deps, owner, heard, used(40), 'provider')).toMatchObject({ state: 'expired', charged: 17n })
      expect(await voidHold(deps, owner, quiet)).toMatchObject({ state: 'expired', charged: 0n })
      await deps.pump.drain(owner.organizationId)
      const [record, ...more] = await deps.collections.usage.find(
        { organizationId: owner.organizationId },
        { sort: { position: -1 }, limit: 10 },
      )
      expect(record).toMatchObject({ source: 'estimated', amount: 17, quantities: used(10, 7) })
      expect(more).toEqual([])
      await voidHold(deps, owner, long)
      clock.advance(3_600_000)
      await reapHolds(deps, never)
      expect(await findWallet(owner)).not.toHaveProperty('nextExpiryAt')
      await audit(deps, owner.organizationId)
    })

    it('that expire before anything was used cost nothing, and leave no usage record', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 40, 20))
      await dispatchHold(deps, owner, id, used(0))
      clock.advance(20_000)
      await reapHolds(deps, never)
      expect(await readMoney(owner)).toEqual({ available: 100, held: 0 })
      expect((await audit(deps, owner.organizationId)).usageRecords).toEqual([])
    })

    it('last as long as their call renews them', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 40, 20))
      await dispatchHold(deps, owner, id, used(10))
      for (let renewal = 0; renewal < 5; renewal++) {
        clock.advance(15_000)
        await checkpointHold(deps, owner, id, used(10), 20)
        await reapHolds(deps, never)
      }
      expect(await readMoney(owner)).toEqual({ available: 60, held: 40 })
      clock.advance(20_000)
      await reapHolds(deps, never)
      expect(await readMoney(owner)).toEqual({ available: 90, held: 0 })
      await audit(deps, owner.organizationId)
    })

    it('use the most expensive tier and bucket within reach, and are charged at those that were reached', async () => {
      const tier = { ...RATE_CARD, aboveInputTokens: 10, inputTokens: 2_000_000n, cachedInputTokens: 0n, cacheWriteTokens: 3_000_000n }
      const rateCard = { ...RATE_CARD, tiers: [tier] }
      const owner = await fundedOrganization(deps, 1_000n)
      const settled = async (quantities: Partial<Quantities>) => {
        const id = deps.ids('hold')
        const hold = await placeHold(deps, owner, { ...call(id, 20), rateCard })
        expect(hold.amount).toBe(60)
        await dispatchHold(deps, owner, id, used(1))
        return (await settleHold(deps, owner, id, { ...NOTHING, ...quantities }, 'provider')).charged
      }
      expect(await settled({ inputTokens: 10 })).toBe(10n)
      expect(await settled({ inputTokens: 11 })).toBe(22n)
      expect(await settled({ inputTokens: 6, cachedInputTokens: 4, cacheWriteTokens: 5, outputTokens: 2 })).toBe(29n)
      await deps.pump.drain(owner.organizationId)
      const records = await deps.collections.usage.find({ organizationId: owner.organizationId }, { sort: { position: 1 }, limit: 3 })
      expect(records.map(({ rates }) => rates.inputTokens).sort()).toEqual([1_000_000, 2_000_000, 2_000_000])
      await audit(deps, owner.organizationId)
    })

    it.each([
      ['that do not rise', [10, 10], 'rateCard.tiers[1].aboveInputTokens'],
      ['that begin at zero', [0], 'rateCard.tiers[0].aboveInputTokens'],
      ['that are nine in number', [1, 2, 3, 4, 5, 6, 7, 8, 9], 'rateCard.tiers'],
    ])('refuse tiers %s', async (_name, limits, param) => {
      const owner = await fundedOrganization(deps, 100n)
      const tiers = limits.map((aboveInputTokens) => ({ ...RATE_CARD, aboveInputTokens }))
      const placed = placeHold(deps, owner, { ...call(deps.ids('hold'), 1), rateCard: { ...RATE_CARD, tiers } })
      await expect(placed).rejects.toMatchObject({ param })
    })

    it('are limited to 2,000 open ones per organization', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const hold = await placeHold(deps, owner, call(deps.ids('hold'), 1))
      const holds = Object.fromEntries(Array.from({ length: MAX_OPEN_HOLDS }, () => [deps.ids('hold'), hold]))
      await deps.collections.wallets.findOneAndUpdate({ _id: owner.organizationId }, { $set: { holds }, $inc: { revision: 1 } })
      await expect(placeHold(deps, owner, call(deps.ids('hold'), 1))).rejects.toEqual(code('service_unavailable'))
    })
  })

describe('Holds under races and faults', () => {
  const open = async (nanoUsd: bigint) => {
    const [store, clock] = [new MemoryDocumentStore(), new ManualClock()]
    const deps = openBilling(store, clock)
    return { store, clock, deps, owner: await fundedOrganization(deps, nanoUsd) }
  }

  it('are either renewed or expired when another process reaps at the same moment', async () => {
    for (let ticks = 0; ticks < 40; ticks++) {
      const { store, clock, deps, owner } = await open(100n)
      const id = deps.ids('hold')
      await placeHold(deps, owner, call(id, 50, 10))
      await dispatchHold(deps, owner, id, used(10))
      clock.advance(10_000)
      const reaping = reapHolds(openBilling(store, clock), never)
      for (let tick = 0; tick < ticks; tick++) await undefined
      const renewed = await checkpointHold(deps, owner, id, used(10, 20), 60).catch((error) => error.code)
      await reaping
      const { openHolds } = await audit(deps, owner.organizationId)
      if (openHolds.length > 0) expect(renewed).toMatchObject({ checkpoint: used(10, 20) })
      else expect(renewed).toBe('service_unavailable')
    }
  })

  it('are never reaped late when one is placed during the scan of the reaper', async () => {
    for (let ticks = 0; ticks < 40; ticks++) {
      const { deps, owner, clock } = await open(100n)
      await placeHold(deps, owner, call(deps.ids('hold'), 1, 10))
      await placeHold(deps, owner, call(deps.ids('hold'), 1, 3_600))
      await deps.pump.drain(owner.organizationId)
      clock.advance(11_000)
      const reaping = reapHolds(deps, never)
      for (let tick = 0; tick < ticks; tick++) await undefined
      await placeHold(deps, owner, call(deps.ids('hold'), 1, 10))
      await reaping
      await audit(deps, owner.organizationId)
    }
  })

  it('are refused while the ledger cannot be written, and accepted again afterwards', async () => {
    const { store, deps, owner } = await open(100n)
    const id = deps.ids('hold')
    await deps.pump.drain(owner.organizationId)
    store.failCall(1, 'failed')
    await expect(placeHold(deps, owner, call(id, 50))).rejects.toEqual(code('service_unavailable'))
    await placeHold(deps, owner, call(id, 50))
    expect((await audit(deps, owner.organizationId)).openHolds).toEqual([id])
  })

  it('are placed once when the response was lost', async () => {
    const { store, deps, owner } = await open(100n)
    const id = deps.ids('hold')
    await placeHold(deps, owner, call(deps.ids('hold'), 1))
    await deps.pump.drain(owner.organizationId)
    store.failCall(1, 'lost answer')
    await expect(placeHold(deps, owner, call(id, 50))).rejects.toEqual(code('service_unavailable'))
    expect(await placeHold(deps, owner, call(id, 50))).toMatchObject({ amount: 50 })
    expect((await audit(deps, owner.organizationId)).entries.filter((entry) => entry.reference === id)).toHaveLength(1)
  })

  it('are refused while the outbox pump is far behind, and can still end', async () => {
    const { deps, owner } = await open(100n)
    const id = deps.ids('hold')
    await placeHold(deps, owner, call(id, 10))
    await deps.pump.drain(owner.organizationId)
    const { entry } = await creditWallet(deps, { kind: 'top_up', organizationId: owner.organizationId, amount: 1n, reference: 'b' })
    await deps.pump[Symbol.asyncDispose]()
    const outbox = Array.from({ length: MAX_PENDING_ENTRIES }, (_, i) => ({ entry: { ...entry, sequence: entry.sequence + 1 + i } }))
    await deps.collections.wallets.findOneAndUpdate({ _id: owner.organizationId }, { $set: { outbox }, $inc: { revision: 1 } })
    await expect(placeHold(deps, owner, call(deps.ids('hold'), 1))).rejects.toEqual(code('service_unavailable'))
    expect(await settleHold(deps, owner, id, used(10), 'provider')).toMatchObject({ charged: 10n })
  })
})

for (const { name, open } of stores)
  describe(`Credit on ${name}`, () => {
    let store: DocumentStore
    let deps: BillingDeps
    beforeAll(async () => {
      store = await open()
      deps = openBilling(store, new ManualClock())
    })
    afterAll(async () => {
      await deps.pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })
    const credit = (organizationId: string, amount: bigint, reference: string, kind: 'top_up' | 'adjustment' = 'top_up') =>
      creditWallet(deps, { kind, organizationId, amount, reference })

    it('is added once per organization and reference, under concurrent and later calls', async () => {
      const { organizationId } = await fundedOrganization(deps, 0n)
      const other = await fundedOrganization(deps, 0n)
      const all = await Promise.all(Array.from({ length: 8 }, () => credit(organizationId, 50n, 'payment 1')))
      await deps.pump.drain(organizationId)
      all.push(await credit(organizationId, 50n, 'payment 1'))
      for (const { entry } of all) expect(entry).toEqual(all[0]!.entry)
      await credit(other.organizationId, 50n, 'payment 1')
      await expect(credit(organizationId, 51n, 'payment 1')).rejects.toEqual(code('idempotency_conflict'))
      await expect(credit(organizationId, 50n, 'payment 1', 'adjustment')).rejects.toEqual(code('idempotency_conflict'))
      expect((await audit(deps, organizationId)).entries).toMatchObject([{ kind: 'top_up', balance: 50, reference: 'payment 1' }])
    })

    it('can be taken back down to the held amount', async () => {
      const owner = await fundedOrganization(deps, 100n)
      await placeHold(deps, owner, call(deps.ids('hold'), 30))
      await expect(credit(owner.organizationId, -71n, 'a', 'adjustment')).rejects.toEqual(code('unsupported_value'))
      expect((await credit(owner.organizationId, -70n, 'a', 'adjustment')).wallet).toMatchObject({ available: 0, held: 30 })
      await audit(deps, owner.organizationId)
    })

    it('is limited to a balance of 9,000,000 USD', async () => {
      const { organizationId } = await fundedOrganization(deps, 1n)
      await expect(credit(organizationId, MAX_NANO_USD, 'a')).rejects.toEqual(code('unsupported_value'))
      await expect(credit(organizationId, 10n ** 20n, 'a')).rejects.toEqual(code('unsupported_value'))
      await credit(organizationId, MAX_NANO_USD - 1n, 'a')
      await audit(deps, organizationId)
    })

    for (const { what, amount, reference, kind, expected } of [
      { what: 'a top-up of zero', amount: 0n, reference: 'a', kind: 'top_up', expected: 'unsupported_value' },
      { what: 'a negative top-up', amount: -1n, reference: 'a', kind: 'top_up', expected: 'unsupported_value' },
      { what: 'an adjustment of zero', amount: 0n, reference: 'a', kind: 'adjustment', expected: 'unsupported_value' },
      { what: 'an empty reference', amount: 1n, reference: ' ', kind: 'top_up', expected: 'invalid_request' },
      { what: 'a long reference', amount: 1n, reference: 'a'.repeat(101), kind: 'top_up', expected: 'string_above_max_length' },
    ] as const)
      it(`is refused for ${what}`, async () => {
        const { organizationId } = await fundedOrganization(deps, 10n)
        await expect(credit(organizationId, amount, reference, kind)).rejects.toEqual(code(expected))
        expect((await audit(deps, organizationId)).entries).toHaveLength(1)
      })

    it('is refused for an organization that does not exist', async () => {
      await expect(credit('org_none', 1n, 'a')).rejects.toEqual(code('not_found'))
    })
  })
