import { describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import { systemClock } from '../process/clock.ts'
import { FairSemaphore } from '../process/fair-semaphore.ts'
import { FAIR_JOBS_INDEX, FairJobs, type FairLeasable } from './fair-jobs.ts'

interface Work {
  readonly _id: string
  readonly organizationId: string
  readonly job?: FairLeasable
}

const EARLIER = new Date(Date.now() - 60_000)

function world(permits = 1_000) {
  const works = new MemoryDocumentStore().collection<Work>({
    name: 'works',
    indexes: [{ fields: ['job.dueAt'], sparse: true }, FAIR_JOBS_INDEX],
  })
  let jobCount = 0
  const add = (organizationId: string, job: Partial<FairLeasable> = {}) =>
    works.insertOne({
      _id: `${organizationId}_${jobCount}`,
      organizationId,
      job: { kind: 'do', organizationId, lease: null, dueAt: new Date(EARLIER.getTime() + jobCount++), ...job } as FairLeasable,
    })
  const semaphore = new FairSemaphore(permits)
  const jobs = new FairJobs(works, semaphore, systemClock)
  /** Returns the organizations in the order of their claims. With `isShort`, each releases its permit. */
  const claimAll = async (isShort = true) => {
    const order: string[] = []
    for (let claimed = await jobs.claim(); claimed; claimed = await jobs.claim()) {
      order.push(claimed.record._id)
      if (isShort) claimed.release()
    }
    return order
  }
  return { works, add, jobs, claimAll, semaphore }
}

describe('Due jobs', () => {
  it('are claimed in turns by organization, each in the order in which its jobs are due', async () => {
    const { add, claimAll } = world()
    for (let i = 0; i < 4; i++) await add('a')
    await add('b')
    await add('c')
    await add('c')
    await add('d', { dueAt: new Date(Date.now() + 60_000) })
    expect(await claimAll()).toEqual(['a_0', 'b_4', 'c_5', 'a_1', 'c_6', 'a_2', 'a_3'])
  })

  it('are claimed per turn according to the weight, if they are due and have slots', async () => {
    const { add, claimAll } = world()
    for (let i = 0; i < 4; i++) await add('a', { weight: 3 })
    for (let i = 0; i < 3; i++) await add('b')
    for (let i = 0; i < 3; i++) await add('c', { weight: 2 })
    expect(await claimAll()).toEqual(['a_0', 'a_1', 'a_2', 'b_4', 'c_7', 'c_8', 'a_3', 'b_5', 'c_9', 'b_6'])
    const narrow = world(4)
    for (let i = 0; i < 4; i++) await narrow.add('a', { weight: 3 })
    await narrow.add('b')
    expect(await narrow.claimAll(false)).toEqual(['a_0', 'a_1', 'b_4'])
  })

  it('of a new organization are the next but one, however many jobs another has', async () => {
    const { add, jobs, claimAll } = world()
    for (let i = 0; i < 400; i++) await add('a')
    for (let i = 0; i < 5; i++) (await jobs.claim())!.release()
    await add('b')
    expect((await claimAll()).findIndex((id) => id.startsWith('b'))).toBeLessThanOrEqual(1)
  })

  it('of an organization without a free slot wait, and those of others do not', async () => {
    const { add, claimAll, jobs } = world(4)
    for (let i = 0; i < 5; i++) await add('a')
    expect((await claimAll(false)).length).toBe(2)
    await add('b')
    const claimed = await jobs.claim()
    expect(claimed!.record.organizationId).toBe('b')
    claimed!.release()
    expect(await jobs.claim()).toBeNull()
  })

  it('are claimed once by concurrent claims, each a turn of its own', async () => {
    const { add, jobs } = world()
    for (let i = 0; i < 3; i++) await add('a')
    await add('b')
    const claims = await Promise.all(Array.from({ length: 6 }, () => jobs.claim()))
    expect(claims.map((claim) => claim?.record._id)).toEqual(['a_0', 'b_3', 'a_1', 'a_2', undefined, undefined])
  })

  it('of an earlier version are claimed when nobody has a turn', async () => {
    const { works, add, claimAll } = world()
    await works.insertOne({ _id: 'old', organizationId: 'a', job: { kind: 'do', lease: null, dueAt: EARLIER } })
    await add('b')
    expect(await claimAll()).toEqual(['b_0', 'old'])
  })

  it('of more organizations than one poll covers are all found', async () => {
    const { add, jobs } = world(2)
    // Only the last organization has work that is due.
    for (let i = 0; i < 250; i++) await add(`org_${String(i).padStart(3, '0')}`, { dueAt: new Date(Date.now() + 60_000) })
    await add('org_999')
    const found = []
    for (let i = 0; i < 3; i++) found.push(await jobs.claim())
    expect(found.filter(Boolean)).toHaveLength(1)
  })
})
