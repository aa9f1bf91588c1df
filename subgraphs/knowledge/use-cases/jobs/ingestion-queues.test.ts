import { expect, it } from 'vitest'
import { newWorld } from '../../../../test/support/data/knowledge-library.ts'
import { createContext, depsOn, FakeInference, ManualClock, principal } from '../../../../test/support/knowledge.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { type DocumentRecord, type Job, newJob, toSlowJob } from '../../domain/records.ts'
import type { ChunkIndex } from '../../ports/chunk-index.ts'
import { listIngestionQueues } from './ingestion-queues.ts'

const OPERATOR: Principal = { ...principal, scopes: ['operator'] }

function world() {
  const clock = new ManualClock()
  const stores = newWorld({ index: {} as ChunkIndex })
  const deps = depsOn({ ...stores, inference: new FakeInference(), clock })
  let created = 0
  const at = (ms: number) => new Date(clock.now().getTime() + ms)
  const add = (organizationId: string, job: Job) =>
    deps.store.documents.insertOne({ _id: `doc_${created++}`, organizationId, job } as DocumentRecord)
  const list = (after = '') => listIngestionQueues(deps, OPERATOR, after)
  return { deps, add, at, list }
}

it('counts waiting and running jobs, with slow work, and since when', async () => {
  const { add, at, list } = world()
  await add('org_a', newJob('ingest', 'org_a', at(-5_000)))
  await add('org_a', newJob('ingest', 'org_a', at(-3_000)))
  await add('org_a', { ...newJob('ingest', 'org_a', at(30_000)), lease: 'x' })
  await add('org_a', toSlowJob(newJob('ingest', 'org_a', at(0)), at(-9_000)))
  await add('org_b', toSlowJob(newJob('ingest', 'org_b', at(0)), at(60_000)))
  expect(await list()).toEqual({
    queues: [
      { organization: { id: 'org_a' }, due: 3, underWay: 1, dueSince: at(-9_000) },
      { organization: { id: 'org_b' }, due: 0, underWay: 1, dueSince: null },
    ],
    next: null,
  })
})

it('returns 100 organizations at a time, once each', async () => {
  const { add, at, list } = world()
  const ids = Array.from({ length: 130 }, (_, i) => `org_${String(i).padStart(3, '0')}`)
  for (const id of ids) await add(id, newJob('ingest', id, at(-1)))
  const first = await list()
  const second = await list(first.next!)
  expect([first.queues.length, second.next]).toEqual([100, null])
  expect([...first.queues, ...second.queues].map(({ organization }) => organization.id)).toEqual(ids)
})

it('is for the operator only', async () => {
  const { deps } = world()
  await expect(listIngestionQueues(deps, createContext().caller, '')).rejects.toMatchObject({ code: 'permission_denied' })
})
