import { describe, expect, it } from 'vitest'
import { creditPostings, endPostings, holdPostings, type LedgerEntry } from './ledger.ts'
import { balanceChanges } from './wallet-change.ts'

/** Returns entries of a wallet that starts with 100: `+20` is credit, `-5` a charge, `0` a hold. */
function createEntries(movements: readonly number[]): readonly LedgerEntry[] {
  let balance = 100
  return movements.map((movement, i) => {
    balance += movement
    const postings =
      movement > 0 ? creditPostings(BigInt(movement)) : movement < 0 ? endPostings(9n, BigInt(-movement), 0n) : holdPostings(9n)
    const facts = { _id: `ent_${i}`, organizationId: 'org', kind: 'settle', reference: 'r', at: new Date(i) } as const
    return { ...facts, postings, sequence: i + 1, balance }
  })
}

describe('Wallet changes', () => {
  it.each<[string, readonly number[], number | null, readonly string[]]>([
    ['creates none while money is only held', [0, 0], 95, []],
    ['merges changes that wait together into one', [-1, -1, 0, +3], null, ['4 101 null']],
    ['reports the fall below the threshold, and the last change', [-4, -2, -2], 95, ['2 94 fell', '3 92 null']],
    ['reports every crossing', [-6, +6, -6, -1], 95, ['1 94 fell', '2 100 rose', '3 94 fell', '4 93 null']],
    ['reports no crossing of a threshold that is only reached', [-5], 95, ['1 95 null']],
    ['reports no crossing without a threshold', [-9, +9], null, ['2 100 null']],
  ])('%s', (_name, movements, threshold, expected) => {
    const changes = balanceChanges(createEntries(movements), threshold)
    expect(changes.map(({ cursor, balance, crossed }) => `${cursor} ${balance} ${crossed}`)).toEqual(expected)
    for (const { balance, isLow } of changes) expect(isLow).toBe(threshold !== null && balance < threshold)
  })
})
