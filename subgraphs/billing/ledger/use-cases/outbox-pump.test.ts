import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { fundedOrganization, ManualClock, openBilling } from '../../test-support/world.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { creditWallet } from './credit-wallet.ts'

const CREDIT = 100n

async function copied({ collections }: BillingDeps, organizationId: string): Promise<{ inLedger: number; inOutbox: number }> {
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  const entries = await collections.entries.find({ organizationId }, { sort: { sequence: 1 }, limit: 100 })
  return { inLedger: entries.length, inOutbox: wallet!.outbox.length }
}

describe('Outbox pump', () => {
  it('copies out a single entry without a batch', async () => {
    const deps = openBilling(new MemoryDocumentStore(), new ManualClock())
    const { organizationId } = await fundedOrganization(deps, CREDIT)
    await eventually(async () => (await copied(deps, organizationId)).inOutbox === 0)
    expect(await copied(deps, organizationId)).toEqual({ inLedger: 1, inOutbox: 0 })
  })

  it('lets the writer delete what it has copied', async () => {
    const deps = openBilling(new MemoryDocumentStore(), new ManualClock())
    const { organizationId } = await fundedOrganization(deps, CREDIT)
    for (const reference of ['second', 'third']) {
      await deps.pump.drain(organizationId)
      const { entry, wallet } = await creditWallet(deps, { kind: 'top_up', organizationId, amount: CREDIT, reference })
      expect(wallet.outbox.map((pending) => pending.entry)).toEqual([entry])
    }
  })

  it('copies out entries that wait for a batch when it stops', async () => {
    const deps = openBilling(new MemoryDocumentStore(), new ManualClock())
    const owners = await Promise.all([fundedOrganization(deps, CREDIT), fundedOrganization(deps, CREDIT)])
    await deps.pump[Symbol.asyncDispose]()
    for (const { organizationId } of owners) expect(await copied(deps, organizationId)).toEqual({ inLedger: 1, inOutbox: 0 })
  })
})
