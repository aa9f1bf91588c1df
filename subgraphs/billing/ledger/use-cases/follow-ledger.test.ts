import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { createCard, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { sortedIds } from '../domain/ids.ts'
import { NOTHING } from '../domain/money.ts'
import { placeHold } from '../holds/place-hold.ts'
import { settleHold } from '../holds/settle-hold.ts'
import { voidHold } from '../holds/void-hold.ts'
import { creditWallet } from './credit-wallet.ts'
import { followUsage } from './follow-usage.ts'
import { followWallet } from './follow-wallet.ts'

/** A token costs 1 nano-USD. */
const RATE_CARD = createCard({ inputTokens: 1_000_000n })

for (const { name, open } of STORES)
  describe(`Ledger feed on ${name}`, () => {
    let store: DocumentStore
    let processes: readonly BillingDeps[]
    beforeAll(async () => {
      store = await open()
      const clock = new ManualClock()
      processes = [openBilling(store, clock), openBilling(store, clock)]
    })
    afterAll(async () => {
      for (const { pump } of processes) await pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })

    const use = async (deps: BillingDeps, principal: Principal, tokens: number, end: 'settle' | 'void' = 'settle') => {
      const id = deps.ids('hold')
      const call = { modelId: 'm', operation: 'embedding', requestId: 'r', rateCard: RATE_CARD, ttlSeconds: 60 } as const
      await placeHold(deps, principal, { id, ...call, ceiling: { ...NOTHING, inputTokens: tokens } })
      if (end === 'void') return voidHold(deps, principal, id)
      return settleHold(deps, principal, id, { ...NOTHING, inputTokens: tokens }, 'provider')
    }

    it('delivers each usage record once, in order, from two processes, whenever the follower reconnects', async () => {
      const owner = await fundedOrganization(processes[0]!, 100_000n)
      const { sequence } = (await processes[0]!.collections.wallets.findOne({ _id: owner.organizationId }))!
      const charges = Array.from({ length: 40 }, (_, i) => use(processes[i % 2]!, owner, i + 1, i % 5 === 4 ? 'void' : 'settle'))
      const seen: { readonly amount: number; readonly cursor: string }[] = []
      let after = String(sequence)
      // 32 of the 40 calls are charged; each follower stops after 3 events.
      for (let round = 0; seen.length < 32; round++) {
        const events = followUsage(processes[round % 2]!, owner.organizationId, after)
        for (let read = 0; read < 3 && seen.length < 32; read++) {
          const { record, cursor } = (await events.next()).value!
          seen.push({ amount: record.amount, cursor })
          after = cursor
        }
        await events.return!()
      }
      await Promise.all(charges)
      const cursors = seen.map(({ cursor }) => Number(cursor))
      expect(cursors).toEqual(cursors.toSorted((a, b) => a - b))
      expect(new Set(cursors).size).toBe(32)
      expect(seen.map(({ amount }) => amount).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 40 }, (_, i) => i + 1).filter((amount) => amount % 5 !== 0),
      )
      const again = followUsage(processes[0]!, owner.organizationId, String(sequence))
      for (const { cursor } of seen) expect((await again.next()).value!.cursor).toBe(cursor)
      await again.return!()
    })

    it('delivers what comes after it began, and nothing of another organization', async () => {
      const [deps] = processes as [BillingDeps]
      const [owner, otherOwner] = [await fundedOrganization(deps, 1_000n), await fundedOrganization(deps, 1_000n)]
      await use(deps, owner, 1)
      const events = followUsage(deps, owner.organizationId, null)
      const first = events.next()
      await use(deps, otherOwner, 2)
      await use(deps, owner, 3)
      expect((await first).value!.record).toMatchObject({ organizationId: owner.organizationId, amount: 3 })
      await events.return!()
    })

    it('stops before an entry that is not copied yet, although a later one is', async () => {
      const [deps] = processes as [BillingDeps]
      const owner = await fundedOrganization(deps, 1_000n)
      const { organizationId } = owner
      await use(deps, owner, 7)
      await deps.pump.drain(organizationId)
      // This is the state after a pump that dies between its inserts.
      const { entries, usage, wallets } = deps.collections
      const hold = (await entries.findOneAndDelete({ organizationId, sequence: 2 }))!
      const end = (await entries.findOne({ organizationId, sequence: 3 }))!
      const record = (await usage.findOneAndDelete({ _id: sortedIds(organizationId, hold.reference).usage }))!
      await wallets.findOneAndUpdate(
        { _id: organizationId },
        { $push: { outbox: { $each: [{ entry: hold }, { entry: end, usage: record }] } } },
      )
      const events = followUsage(deps, organizationId, '1')
      let isCopied = false
      const first = events.next().then(({ value }) => ({ amount: value?.record.amount, isCopied }))
      await new Promise((resolve) => setImmediate(resolve))
      isCopied = true
      await deps.pump.drain(organizationId)
      expect(await first).toEqual({ amount: 7, isCopied: true })
      await events.return!()
    })

    it('reports a balance that falls below the threshold and rises again', async () => {
      const [deps] = processes as [BillingDeps]
      const owner = await fundedOrganization(deps, 100n)
      const { organizationId } = owner
      await deps.collections.organizations.insertOne({
        _id: organizationId,
        name: 'A',
        residencyPolicy: 'unrestricted',
        plan: 'self-hosted',
        lowBalanceThreshold: 50,
        createdAt: new Date(0),
      })
      await use(deps, owner, 60)
      await use(deps, owner, 5)
      await creditWallet(deps, { kind: 'top_up', organizationId, amount: 100n, reference: 'again' })
      await deps.pump.drain(organizationId)
      const events = followWallet(deps, organizationId, '1')
      expect((await events.next()).value).toMatchObject({ balance: 40, isLow: true, crossed: 'fell' })
      expect((await events.next()).value).toMatchObject({ balance: 135, isLow: false, crossed: 'rose' })
      const next = events.next()
      await use(deps, owner, 10, 'void')
      await use(deps, owner, 10)
      expect((await next).value).toMatchObject({ balance: 125, isLow: false, crossed: null })
      await events.return!()
    })

    it.each(['-1', '1e3', 'x', '999999'])('refuses the cursor %s', async (after) => {
      const [deps] = processes as [BillingDeps]
      const { organizationId } = await fundedOrganization(deps, 10n)
      await expect(followUsage(deps, organizationId, after).next()).rejects.toMatchObject({ code: 'invalid_request', param: 'after' })
    })
  })
