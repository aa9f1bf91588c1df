import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { ReadBudget } from '../../../common/documents/long-records.ts'
import { openCollections } from '../tables.ts'
import { listThreads } from './threads.ts'

it('lists no expired thread, even before it is deleted', async () => {
  const collections = openCollections(new MemoryDocumentStore())
  const now = new Date('2027-01-01T00:00:00Z')
  const id = (last: string) => `thr_${last.padStart(32, '0')}`
  for (const [last, afterMs] of [
    ['1', -1],
    ['2', 0],
    ['3', 1],
  ] as const)
    await collections.threads.insertOne({
      ...{ _id: id(last), organizationId: 'org', agentId: 'agt', messages: '[]', revision: 1 },
      ...{ updatedAt: now, expiresAt: new Date(now.getTime() + afterMs) },
    })
  // Only the clock's time is needed.
  const deps = { collections, clock: { now: () => now } as Parameters<typeof listThreads>[0]['clock'] }
  const { edges } = await listThreads(deps, { _id: 'agt', organizationId: 'org' }, { first: 10 }, new ReadBudget())
  expect(edges.map(({ node }) => node._id)).toEqual([id('3')])
})
