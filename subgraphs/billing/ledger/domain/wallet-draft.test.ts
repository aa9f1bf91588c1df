import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { openCollections } from '../../use-cases/tables.ts'
import { creditPostings, holdPostings } from './ledger.ts'
import { NOTHING } from './money.ts'
import { type CallHold, emptyWallet, type Wallet } from './wallet.ts'
import { WalletDraft } from './wallet-draft.ts'

const IDS = ['a', 'b', 'c']
const AMOUNT = 5

const id = fc.constantFrom(...IDS)
const change = fc.oneof(
  fc.record({ does: fc.constant('hold' as const), id, at: fc.nat({ max: 9 }) }),
  fc.record({ does: fc.constant('release' as const), id }),
  fc.record({ does: fc.constant('spend' as const), id }),
  fc.record({ does: fc.constant('limit' as const), id }),
  fc.record({ does: fc.constant('forget' as const), id }),
  fc.record({ does: fc.constant('credit' as const) }),
  fc.record({ does: fc.constant('expiry' as const) }),
  fc.record({ does: fc.constant('rules' as const), revision: fc.nat({ max: 3 }) }),
)
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

function makeHold(apiKeyId: string, at: number): CallHold {
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

function apply(draft: WalletDraft, made: Change, entryId: string): void {
  const at = new Date(0)
  switch (made.does) {
    case 'hold':
      if (draft.available < AMOUNT || draft.hold(made.id)) return
      draft.post({ _id: entryId, kind: 'hold', postings: holdPostings(BigInt(AMOUNT)), reference: made.id, at })
      return draft.putHold(made.id, makeHold(made.id, made.at))
    case 'release':
      return draft.dropHold(made.id)
    case 'spend':
      return draft.addSpending(makeHold(made.id, 0), AMOUNT, at)
    case 'limit':
      return draft.putSpendLimit(made.id, null)
    case 'forget':
      return draft.dropSpending(made.id)
    case 'credit':
      draft.post({ _id: entryId, kind: 'top_up', postings: creditPostings(20n), reference: 'r', at })
      return
    case 'expiry':
      return draft.recomputeNextExpiry()
    case 'rules':
      return draft.enforce(made.revision)
  }
}

describe('a wallet draft', () => {
  it('knows the wallet that the store has after its update', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(change, { maxLength: 6 }), { maxLength: 6 }), async (drafts) => {
        const { wallets } = openCollections(new MemoryDocumentStore())
        let wallet: Wallet = emptyWallet('org')
        await wallets.insertOne(wallet)
        for (const [i, changes] of drafts.entries()) {
          const draft = new WalletDraft(wallet, new Map())
          for (const [j, made] of changes.entries()) apply(draft, made, `ent_${i}_${j}`)
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
