import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { openCollections } from '../../use-cases/tables.ts'
import { creditPostings, holdPostings } from './ledger.ts'
import { NOTHING } from './money.ts'
import { type CallHold, emptyWallet, type Wallet } from './wallet.ts'
import { WalletDraft } from './wallet-draft.ts'

const AMOUNT = 5

const change = fc.record({
  does: fc.constantFrom('hold', 'release', 'spend', 'limit', 'forget', 'credit', 'expiry', 'rules'),
  id: fc.constantFrom('a', 'b', 'c'),
  number: fc.nat({ max: 9 }),
})
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

function createHold(apiKeyId: string, at: number): CallHold {
  return {
    amount: AMOUNT,
    expiresAt: new Date(at),
    apiKeyId,
    requestId: 'req',
    modelId: 'model',
    operation: 'chat_completion',
    rateCard: { rates: {}, tiers: [] } as never,
    rateCardVersion: '1',
    checkpoint: NOTHING,
  }
}

function apply(draft: WalletDraft, { does, id, number }: Change, entryId: string): void {
  const at = new Date(0)
  if (does === 'hold' && draft.available >= AMOUNT && !draft.hold(id)) {
    draft.post({ _id: entryId, kind: 'hold', postings: holdPostings(BigInt(AMOUNT)), reference: id, at })
    draft.putHold(id, createHold(id, number))
  }
  if (does === 'release') draft.dropHold(id)
  if (does === 'spend') draft.addSpending(createHold(id, 0), AMOUNT, at)
  if (does === 'limit') draft.putSpendLimit(id, null)
  if (does === 'forget') draft.dropSpending(id)
  if (does === 'credit') draft.post({ _id: entryId, kind: 'top_up', postings: creditPostings(20n), reference: 'r', at })
  if (does === 'expiry') draft.recomputeNextExpiry()
  if (does === 'rules') draft.enforce(number)
}

describe('Wallet draft', () => {
  it('equals the wallet that the store has after the update', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 6 }), async (drafts) => {
        const { wallets } = openCollections(new MemoryDocumentStore())
        let wallet: Wallet = emptyWallet('org')
        await wallets.insertOne(wallet)
        for (const [i, changes] of drafts.entries()) {
          const draft = new WalletDraft(wallet, [])
          for (const [j, change] of changes.entries()) apply(draft, change, `ent_${i}_${j}`)
          const update = draft.update()
          if (!update) continue
          const stored = await wallets.findOneAndUpdate({ _id: 'org', revision: wallet.revision }, update)
          wallet = draft.after()
          expect(wallet).toEqual(stored)
        }
      }),
      { numRuns: 300 },
    )
  })
})
