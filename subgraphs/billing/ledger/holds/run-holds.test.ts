import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { storesAndMongo } from '../../../../test/support/document-stores.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { putSpendLimit } from '../../accounts/use-cases/spend-limit.ts'
import { audit } from '../../test-support/audit.ts'
import { FREE, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { NOTHING, type Quantities } from '../domain/money.ts'
import { checkpointHold } from './checkpoint-hold.ts'
import { dispatchHold } from './dispatch-hold.ts'
import { endHoldsOf } from './end-holds-of.ts'
import { placeHold, placeRunHold } from './place-hold.ts'
import { reapHolds } from './reap-holds.ts'
import { settleHold } from './settle-hold.ts'
import { voidHold } from './void-hold.ts'

const used = (inputTokens: number): Quantities => ({ ...NOTHING, inputTokens })
const code = (expected: string) => expect.objectContaining({ code: expected })

for (const { name, open } of await storesAndMongo('Run holds'))
  describe(`Run holds on ${name}`, () => {
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

    const readMoney = async ({ organizationId }: Principal) => {
      const { available, held } = (await deps.collections.wallets.findOne({ _id: organizationId }))!
      return { available, held }
    }
    const newRun = async (owner: Principal, amount: bigint, ttlSeconds = 60, holder: string | null = null) => {
      const id = deps.ids('hold')
      await placeRunHold(deps, owner, { id, amount, requestId: 'run_1', ttlSeconds, holder })
      return id
    }
    /** A token costs 1 nano-USD. */
    const newCall = async (owner: Principal, runHoldId: string | null, tokens: number, ttlSeconds = 60, holder: string | null = null) => {
      const id = deps.ids('hold')
      const rateCard = { version: 'v1', tiers: [], ...FREE, inputTokens: 1_000_000n }
      const terms = { operation: 'chat_completion', modelId: 'm', requestId: 'run_1', rateCard, ceiling: used(tokens), ttlSeconds } as const
      await placeHold(deps, owner, { id, ...terms, runHoldId, holder })
      await dispatchHold(deps, owner, id, used(1))
      return id
    }

    it('set aside one amount for all calls of the run, which charge what they use and leave the rest to the next', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const run = await newRun(owner, 60n)
      expect(await readMoney(owner)).toEqual({ available: 40, held: 60 })
      const first = await newCall(owner, run, 50)
      expect(await readMoney(owner)).toEqual({ available: 40, held: 60 })
      await settleHold(deps, owner, first, used(20), 'provider')
      expect(await readMoney(owner)).toEqual({ available: 40, held: 40 })
      const second = await newCall(owner, run, 40)
      await voidHold(deps, owner, second)
      expect(await readMoney(owner)).toEqual({ available: 40, held: 40 })
      expect(await voidHold(deps, owner, run)).toMatchObject({ state: 'voided', charged: 0n })
      expect(await readMoney(owner)).toEqual({ available: 80, held: 0 })
      const { usageRecords } = await audit(deps, owner.organizationId)
      expect(usageRecords.map(({ requestId, amount }) => ({ requestId, amount }))).toEqual([{ requestId: 'run_1', amount: 20 }])
    })

    it("count whole against the key's spend limit, without counting its calls again", async () => {
      const owner = await fundedOrganization(deps, 1_000n)
      await putSpendLimit(deps, owner.organizationId, owner.apiKeyId, { amount: 100, period: 'day' })
      const run = await newRun(owner, 80n)
      await expect(newRun(owner, 21n)).rejects.toEqual(code('insufficient_quota'))
      const call = await newCall(owner, run, 80)
      await settleHold(deps, owner, call, used(30), 'provider')
      await voidHold(deps, owner, run)
      await expect(newRun(owner, 71n)).rejects.toEqual(code('insufficient_quota'))
      await newRun(owner, 70n)
      await audit(deps, owner.organizationId)
    })

    it('refuse a call that exceeds them, whatever is in the wallet, and count concurrent calls together', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const run = await newRun(owner, 30n)
      await newCall(owner, run, 20)
      await expect(newCall(owner, run, 11)).rejects.toEqual(code('run_limit_exceeded'))
      await newCall(owner, run, 10)
      expect(await readMoney(owner)).toEqual({ available: 70, held: 30 })
      await audit(deps, owner.organizationId)
    })

    it('are refused when the wallet cannot cover them', async () => {
      const owner = await fundedOrganization(deps, 10n)
      await expect(newRun(owner, 11n)).rejects.toEqual(code('insufficient_quota'))
      expect(await readMoney(owner)).toEqual({ available: 10, held: 0 })
    })

    it('may end before their last call, which then returns its rest to the wallet', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const run = await newRun(owner, 60n)
      const call = await newCall(owner, run, 50)
      await voidHold(deps, owner, run)
      expect(await readMoney(owner)).toEqual({ available: 50, held: 50 })
      await expect(newCall(owner, run, 1)).rejects.toEqual(code('service_unavailable'))
      await settleHold(deps, owner, call, used(20), 'provider')
      expect(await readMoney(owner)).toEqual({ available: 80, held: 0 })
      await audit(deps, owner.organizationId)
    })

    it('are renewed, and expire with their calls without a heartbeat', async () => {
      const owner = await fundedOrganization(deps, 100n)
      const run = await newRun(owner, 60n, 20)
      const call = await newCall(owner, run, 50, 20)
      clock.advance(15_000)
      await checkpointHold(deps, owner, run, used(0), 20)
      await checkpointHold(deps, owner, call, used(3), 20)
      clock.advance(15_000)
      await reapHolds(deps, new AbortController().signal)
      expect(await readMoney(owner)).toEqual({ available: 40, held: 60 })
      clock.advance(30_000)
      await reapHolds(deps, new AbortController().signal)
      expect(await readMoney(owner)).toEqual({ available: 97, held: 0 })
      expect((await audit(deps, owner.organizationId)).openHolds).toEqual([])
    })

    it('end with the process that holds them and with their calls, while those of other processes or of none continue', async () => {
      const owners = await Promise.all(Array.from({ length: 60 }, () => fundedOrganization(deps, 100n)))
      const gone = deps.ids('req')
      for (const owner of owners) {
        const run = await newRun(owner, 30n, 60, gone)
        await checkpointHold(deps, owner, await newCall(owner, run, 20, 60, gone), used(3), 60)
        await newCall(owner, null, 10, 60, 'another')
        const goesOn = await newRun(owner, 30n)
        await newCall(owner, goesOn, 5, 60, gone)
        expect(await readMoney(owner)).toEqual({ available: 30, held: 70 })
      }
      expect(await endHoldsOf(deps, gone)).toBe(3 * owners.length)
      expect(await endHoldsOf(deps, gone)).toBe(0)
      for (const owner of owners) {
        // Three for the first call, one for the dispatch of the second.
        expect(await readMoney(owner)).toEqual({ available: 57, held: 39 })
        expect((await audit(deps, owner.organizationId)).usageRecords.map(({ amount, source }) => [amount, source]).toSorted()).toEqual([
          [1, 'estimated'],
          [3, 'estimated'],
        ])
      }
    })

    it('are visible to their owner only, and are no calls', async () => {
      const [owner, other] = [await fundedOrganization(deps, 100n), await fundedOrganization(deps, 100n)]
      const run = await newRun(owner, 60n)
      await expect(newCall(other, run, 1)).rejects.toEqual(code('service_unavailable'))
      await expect(dispatchHold(deps, owner, run, used(1))).rejects.toEqual(code('invalid_request'))
      const call = await newCall(owner, run, 10)
      await expect(newCall(owner, call, 1)).rejects.toEqual(code('service_unavailable'))
      await settleHold(deps, owner, run, used(50), 'counted')
      expect(await readMoney(owner)).toEqual({ available: 90, held: 10 })
    })
  })
