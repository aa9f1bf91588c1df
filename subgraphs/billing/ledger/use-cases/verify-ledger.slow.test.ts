import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STORES } from '../../../../test/support/document-stores.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { createCard, createPrincipal, fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { NOTHING } from '../domain/money.ts'
import { dispatchHold } from '../holds/dispatch-hold.ts'
import { placeHold } from '../holds/place-hold.ts'
import { settleHold } from '../holds/settle-hold.ts'
import { type LedgerFinding, verifyLedger } from './verify-ledger.ts'

const OPERATOR = createPrincipal('org_operator', ['operator'])
const CARD = createCard({ inputTokens: 1_000_000n, outputTokens: 1_000_000n })
const ceiling = { ...NOTHING, inputTokens: 10, outputTokens: 10 }
const used = { ...NOTHING, inputTokens: 4, outputTokens: 3 }

for (const { name, open } of STORES) {
  describe(`Ledger verification on ${name}`, () => {
    let store: DocumentStore
    let deps: BillingDeps
    const clock = new ManualClock()
    beforeEach(async () => {
      store = await open()
      deps = openBilling(store, clock)
    })
    afterEach(async () => {
      await deps.pump[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    })

    const newOrganization = async () => {
      const owner = await fundedOrganization(deps, 1_000_000n)
      const facts = { name: 'O', residencyPolicy: 'unrestricted', plan: 'self-hosted', createdAt: clock.now() } as const
      await deps.collections.organizations.insertOne({ _id: owner.organizationId, ...facts })
      return owner
    }
    const placeTestHold = async (owner: Principal) => {
      const id = deps.ids('hold')
      const call = { modelId: 'm', operation: 'chat_completion', requestId: id, ttlSeconds: 60 } as const
      await placeHold(deps, owner, { id, ...call, ceiling, rateCard: CARD })
      await dispatchHold(deps, owner, id, ceiling)
      return id
    }
    const call = async (owner: Principal) => {
      await settleHold(deps, owner, await placeTestHold(owner), used, 'provider')
    }
    const verify = async () => {
      const counts = { organizations: 0, entries: 0, totals: 0 }
      const findings: LedgerFinding[] = []
      for (let after: string | null = null; ; ) {
        const page = await verifyLedger(deps, OPERATOR, after)
        for (const sum of ['organizations', 'entries', 'totals'] as const) counts[sum] += page[sum]
        findings.push(...page.findings)
        if (page.next === null) return { ...counts, findings }
        after = page.next
      }
    }
    /** Creates an organization with four entries that are all copied: credit, hold and charge, an open hold. */
    const settled = async () => {
      const owner = await newOrganization()
      await call(owner)
      const open = await placeTestHold(owner)
      await deps.pump.drain(owner.organizationId)
      return { ...owner, open }
    }
    const found = async () => (await verify()).findings.map(({ kind, expected, found }) => ({ kind, expected, found }))
    const findEntry = async ({ organizationId }: Principal, sequence: number) =>
      (await deps.collections.entries.findOne({ organizationId, sequence }))!

    it('finds nothing in a consistent ledger, whatever still waits in the outbox', async () => {
      for (const owner of [await newOrganization(), await newOrganization()]) for (let i = 0; i < 2; i++) await call(owner)
      expect((await verify()).findings).toEqual([])
      for (const { _id } of await deps.collections.wallets.find({}, { limit: 10 })) await deps.pump.drain(_id)
      expect(await verify()).toEqual({ organizations: 2, entries: 10, totals: 2, findings: [] })
    })

    it('finds a missing entry, and reports no later one', async () => {
      const owner = await settled()
      await deps.collections.entries.findOneAndDelete({ _id: (await findEntry(owner, 2))._id })
      expect(await found()).toEqual([{ kind: 'gap', expected: 'entry 2', found: 'entry 3' }])
      await deps.collections.entries.findOneAndDelete({ _id: (await findEntry(owner, 4))._id })
      expect(await found()).toEqual([
        { kind: 'gap', expected: 'entry 2', found: 'entry 3' },
        { kind: 'gap', expected: 'entry 4', found: 'entry 3' },
      ])
    })

    it('finds a wrong running balance, and postings that do not sum to zero', async () => {
      const owner = await settled()
      const { _id } = await findEntry(owner, 4)
      await deps.collections.entries.findOneAndUpdate({ _id }, { $inc: { balance: 1 } })
      expect(await found()).toEqual([{ kind: 'balance', expected: '0.000999993 USD', found: '0.000999994 USD' }])
      await deps.collections.entries.findOneAndUpdate({ _id }, { $inc: { balance: -1, 'postings.held': 1 } })
      expect((await found()).map(({ kind }) => kind)).toEqual(['postings', 'balance'])
    })

    it('finds a wallet that is not the sum of its entries, and a missing wallet', async () => {
      const { organizationId: _id } = await settled()
      await deps.collections.wallets.findOneAndUpdate({ _id }, { $inc: { available: 5 } })
      expect(await found()).toEqual([
        {
          kind: 'wallet',
          expected: '0.000999973 USD available, 0.00000002 USD held',
          found: '0.000999978 USD available, 0.00000002 USD held',
        },
      ])
      await deps.collections.wallets.findOneAndDelete({ _id })
      expect(await found()).toEqual([{ kind: 'wallet', expected: 'a wallet', found: null }])
    })

    it('finds a hold that does not sum to the held amount', async () => {
      const { organizationId: _id, open } = await settled()
      await deps.collections.wallets.findOneAndUpdate({ _id }, { $inc: { [`holds.${open}.amount`]: 1 } })
      expect(await found()).toEqual([{ kind: 'holds', expected: '0.000000021 USD', found: '0.00000002 USD' }])
    })

    it('finds a charge without its usage record, and one with another amount', async () => {
      const { organizationId } = await settled()
      const [record] = await deps.collections.usage.find({ organizationId }, { sort: { position: 1 }, limit: 1 })
      await deps.collections.usage.findOneAndUpdate({ _id: record!._id }, { $inc: { amount: 1 } })
      const total = { kind: 'total', found: '1 calls, 0.000000007 USD, 4 inputTokens, 3 outputTokens' }
      expect(await found()).toEqual([
        { kind: 'usage', expected: '0.000000007 USD', found: '0.000000008 USD' },
        { ...total, expected: '1 calls, 0.000000008 USD, 4 inputTokens, 3 outputTokens' },
      ])
      await deps.collections.usage.findOneAndDelete({ _id: record!._id })
      expect(await found()).toEqual([
        { kind: 'usage', expected: '0.000000007 USD', found: null },
        { ...total, expected: '0 calls, 0 USD' },
      ])
    })

    it('finds a total that is not the sum of its records, and a missing total', async () => {
      const { organizationId } = await settled()
      const [total] = await deps.collections.usageTotals.find({ organizationId }, { sort: { position: 1 }, limit: 1 })
      await deps.collections.usageTotals.findOneAndUpdate({ _id: total!._id }, { $set: { 'quantities.inputTokens': '5' } })
      expect(await found()).toEqual([
        {
          kind: 'total',
          expected: '1 calls, 0.000000007 USD, 4 inputTokens, 3 outputTokens',
          found: '1 calls, 0.000000007 USD, 5 inputTokens, 3 outputTokens',
        },
      ])
      await deps.collections.usageTotals.findOneAndDelete({ _id: total!._id })
      expect(await found()).toEqual([{ kind: 'total', expected: 'chat_completion by m on 2026-11-21', found: null }])
    })

    it('checks more entries and records than a page holds', async () => {
      const owner = await newOrganization()
      // Three pages of entries; the one total has more records than a page.
      for (let i = 0; i < 1_010; i++) {
        await call(owner)
        if (i % 100 === 0) await deps.pump.drain(owner.organizationId)
      }
      await deps.pump.drain(owner.organizationId)
      expect(await verify()).toEqual({ organizations: 1, entries: 2_021, totals: 1, findings: [] })
      const [total] = await deps.collections.usageTotals.find({ organizationId: owner.organizationId }, { sort: { position: 1 }, limit: 1 })
      await deps.collections.usageTotals.findOneAndUpdate({ _id: total!._id }, { $set: { calls: '1009' } })
      expect((await found()).map(({ kind }) => kind)).toEqual(['total'])
    }, 60_000)

    it('reports no fault for money that moves during the check', async () => {
      const owner = await newOrganization()
      let isOver = false
      const moving = (async () => {
        for (let i = 0; i < 150; i++) await call(owner)
      })().finally(() => {
        isOver = true
      })
      while (!isOver) expect((await verify()).findings).toEqual([])
      await moving
    }, 60_000)

    it('is for the operator only, and accepts only its own cursors', async () => {
      await expect(verifyLedger(deps, createPrincipal('org_a', ['admin']), null)).rejects.toMatchObject({ code: 'permission_denied' })
      const state = { sequence: 1, balance: 'x', available: '0', held: '0', isSound: true }
      for (const position of [{ at: 'entries', organizationId: 'o', state }, { at: 'totals' }, { at: 'nowhere', after: '' }, null]) {
        const cursor = Buffer.from(JSON.stringify(position)).toString('base64url')
        await expect(verifyLedger(deps, OPERATOR, cursor)).rejects.toMatchObject({ code: 'invalid_request' })
      }
    })
  })
}
