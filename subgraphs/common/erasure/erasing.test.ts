import { expect, it } from 'vitest'
import { systemClock } from '../process/clock.ts'
import { silentLog } from '../process/log.ts'
import { type ErasureTask, eraseOnce } from './erasing.ts'

const task = (organizationId: string, id: string): ErasureTask => ({
  ...{ id, organizationId, kind: 'document', documentId: 'doc_1', documentIds: ['doc_1'], apiKeyIds: [] },
  ...{ requestedAt: new Date(), isFound: true, notes: null },
})

it('serves organizations in round robin, so that many erasures of one do not delay the others', async () => {
  const tasks = [task('org_a', 'a1'), task('org_a', 'a2'), task('org_a', 'a3'), task('org_b', 'b1'), task('org_c', 'c1')]
  const erased: string[] = []
  const queue = { list: async () => tasks, noteFound: async () => undefined, finish: async () => undefined }
  const erase = async ({ id }: ErasureTask) => {
    erased.push(id)
    return { isEmpty: true }
  }
  const erasure = { queue, find: async () => ({ found: {} }), erase, clock: systemClock, log: silentLog }
  await eraseOnce(erasure, AbortSignal.timeout(5_000))
  expect(erased).toEqual(['a1', 'b1', 'c1', 'a2', 'a3'])
})
