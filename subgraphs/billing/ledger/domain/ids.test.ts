import { describe, expect, it } from 'vitest'
import { idSource, timeOfId } from '../../../common/process/ids.ts'
import { endEntryId, formerEndEntryId, usageRecordId, usageRecordIdOf } from './ids.ts'

const now = Date.UTC(2026, 10, 27)
const ids = idSource({ now: () => new Date(now) } as never)

describe('the ids of what ends a hold', () => {
  it('are UUIDv7 that sort as the holds do', () => {
    const holds = Array.from({ length: 20 }, () => ids('hold'))
    for (const idOf of [endEntryId, usageRecordId]) {
      const made = holds.map((hold) => idOf('org_1', hold))
      expect(made.toSorted()).toEqual(made)
      expect(made.map(timeOfId)).toEqual(holds.map(() => now))
      expect(made.every((id) => /^(?:ent|use)_[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/.test(id))).toBe(true)
    }
  })

  it('are the same each time, and others in another organization', () => {
    const hold = ids('hold')
    expect(endEntryId('org_1', hold)).toBe(endEntryId('org_1', hold))
    expect(endEntryId('org_1', hold)).not.toBe(endEntryId('org_2', hold))
    expect(usageRecordId('org_1', hold)).not.toBe(usageRecordId('org_2', hold))
  })

  it('are of one version: the usage record is known by its entry', () => {
    const [organizationId, reference] = ['org_1', ids('hold')]
    const [current, former] = [endEntryId(organizationId, reference), formerEndEntryId(organizationId, reference)].map((_id) =>
      usageRecordIdOf({ _id, organizationId, reference }),
    )
    expect(current).toBe(usageRecordId(organizationId, reference))
    expect(former).toMatch(/^use_[0-9a-f]{32}$/)
    expect(former).not.toBe(current)
  })
})
