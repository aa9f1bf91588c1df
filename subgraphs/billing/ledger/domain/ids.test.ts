import { describe, expect, it } from 'vitest'
import { idSource, timeOfId } from '../../../common/process/ids.ts'
import { digestIds, sortedIds, usageRecordIdOf } from './ids.ts'

const now = Date.UTC(2026, 10, 27)
const ids = idSource({ now: () => new Date(now), sleep: () => Promise.resolve() })

describe('IDs of entries that end a hold', () => {
  it('are UUIDv7 that sort like the holds', () => {
    const holds = Array.from({ length: 20 }, () => ids('hold'))
    for (const kind of ['entry', 'usage'] as const) {
      const generated = holds.map((hold) => sortedIds('org_1', hold)[kind])
      expect(generated.toSorted()).toEqual(generated)
      expect(generated.map(timeOfId)).toEqual(holds.map(() => now))
      expect(generated.every((id) => /^(?:ent|use)_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/.test(id))).toBe(true)
    }
  })

  for (const idsOf of [sortedIds, digestIds])
    it(`are deterministic, and differ by organization: ${idsOf.name}`, () => {
      const hold = ids('hold')
      expect(idsOf('org_1', hold)).toEqual(idsOf('org_1', hold))
      expect(idsOf('org_1', hold).entry).not.toBe(idsOf('org_2', hold).entry)
      expect(idsOf('org_1', hold).usage).not.toBe(idsOf('org_2', hold).usage)
    })

  for (const idsOf of [sortedIds, digestIds])
    it(`have one form, so that the entry ID determines the usage record ID: ${idsOf.name}`, () => {
      const [organizationId, reference] = ['org_1', ids('hold')]
      const { entry, usage } = idsOf(organizationId, reference)
      expect(usageRecordIdOf({ _id: entry, organizationId, reference })).toBe(usage)
    })

  it('equal those that version 0.2 created', () => {
    expect(digestIds('org_1', 'hold_0198c0a4c0007000800000000000abcd')).toEqual({
      entry: 'ent_ba9e61364ba6db5cb03c6f44750ad5d5',
      usage: 'use_7e78bfae222bb8675656e41607b770e2',
    })
  })
})
