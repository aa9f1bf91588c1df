import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Life, ManualClock } from '../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import { full } from '../../../test/support/soak.ts'
import type { DocumentRecord } from '../domain/records.ts'
import { type KnowledgeStore, knowledgeStore } from '../ports/knowledge-store.ts'
import { type Counted, count, readUsage } from './count-usage.ts'
import { countedVectors } from './documents/count-document.ts'

const ORGANIZATION = 'org_1'
const LIMIT = 20
const DOCUMENTS = ['doc_a', 'doc_b', 'doc_c']

async function newStore(): Promise<KnowledgeStore> {
  const store = knowledgeStore(new MemoryDocumentStore())
  for (const _id of DOCUMENTS) {
    const document = {
      _id,
      organizationId: ORGANIZATION,
      collectionId: 'col_1',
      listed: true,
      status: 'queued',
      countedVectors: { value: 0, by: _id },
      job: { kind: 'ingest', dueAt: new Date(0), lease: 'lease_0', starts: 0, failures: 0, firstFailureAt: null },
    }
    await store.documents.insertOne(document as unknown as DocumentRecord)
  }
  return store
}

const getTotal = async (store: KnowledgeStore) => (await readUsage(store, ORGANIZATION)).vectors
async function sumVectors(store: KnowledgeStore): Promise<number> {
  const documents = await Promise.all(DOCUMENTS.map((_id) => store.documents.findOne({ _id })))
  return documents.reduce((sum, document) => sum + document!.countedVectors.value, 0)
}

/**
 * One worker's changes of one document. The worker first takes the lease. It may die at a call, or continue after
 * another worker has taken the lease.
 */
const worker = fc.record({
  document: fc.constantFrom(...DOCUMENTS),
  numbers: fc.array(fc.integer({ min: 0, max: 15 }), { minLength: 1, maxLength: 3 }),
  diesAt: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 14 })),
  effect: fc.constantFrom('failed' as const, 'lost answer' as const),
})

it('the total equals the sum of the records and stays below the limit, through crashes and lost leases', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(worker, { minLength: 1, maxLength: 5 }), async (scheduler, workers) => {
      const store = await newStore()
      const clock = new ManualClock()
      const run = async ({ document, numbers, diesAt, effect }: (typeof workers)[number], lease: string) => {
        const life = new Life(diesAt, effect)
        life.onCall = () => scheduler.schedule(Promise.resolve())
        const seen = { ...store, usage: life.sees(store.usage, 'usage'), documents: life.sees(store.documents, 'documents') }
        const leased = await seen.documents.findOneAndUpdate({ _id: document }, { $set: { 'job.lease': lease } })
        for (const number of numbers) {
          await count({ store: seen, clock }, countedVectors({ store: seen }, leased!), number, LIMIT)
          expect(await getTotal(store)).toBeLessThanOrEqual(LIMIT)
        }
      }
      const running = Promise.allSettled(workers.map((one, i) => run(one, `lease_${i + 1}`)))
      const unexpected = (await scheduler.waitFor(running)).flatMap((result) =>
        result.status === 'rejected' && result.reason.constructor.name !== 'Crash' ? [result.reason] : [],
      )
      expect(unexpected).toEqual([])
      expect(await getTotal(store)).toBeGreaterThanOrEqual(await sumVectors(store))

      // Another worker of each document settles the rest.
      for (const [i, _id] of DOCUMENTS.entries()) {
        const leased = await store.documents.findOneAndUpdate({ _id }, { $set: { 'job.lease': `last_${i}` } })
        expect(await count({ store, clock }, countedVectors({ store }, leased!), 1)).toBe('counted')
      }
      expect(await getTotal(store)).toBe(DOCUMENTS.length)
      expect(await sumVectors(store)).toBe(DOCUMENTS.length)
      expect((await readUsage(store, ORGANIZATION)).marks).toEqual({})
    }),
    { numRuns: full(5_000) },
  )
}, 120_000)

/** Returns a number of a document that several callers may change concurrently, like uploads of the same content. */
function shared(store: KnowledgeStore): Counted {
  const _id = DOCUMENTS[0]!
  return {
    organizationId: ORGANIZATION,
    subject: 'shared',
    total: 'vectors',
    exclusive: false,
    current: async () => (await store.documents.findOne({ _id }))?.countedVectors,
    write: async (number, { by }) =>
      (await store.documents.findOneAndUpdate({ _id, 'countedVectors.by': by }, { $set: { countedVectors: { ...number } } })) !== null,
  }
}

it('never mistakes a competing change of the same record for a reached limit', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      const store = await newStore()
      const clock = new ManualClock()
      const change = async () => {
        const life = new Life()
        life.onCall = () => scheduler.schedule(Promise.resolve())
        const seen = { ...store, usage: life.sees(store.usage, 'usage'), documents: life.sees(store.documents, 'documents') }
        return count({ store: seen, clock }, shared(seen), LIMIT, LIMIT)
      }
      const outcomes = await scheduler.waitFor(Promise.all([change(), change(), change()]))
      // A change that an impatient caller interrupted is reported as such.
      expect(outcomes).not.toContain('over_limit')
      expect(outcomes).toContain('counted')
      expect(await getTotal(store)).toBe(LIMIT)
    }),
    { numRuns: 300 },
  )
}, 120_000)

it('refuses what exceeds the limit without a change', async () => {
  const store = await newStore()
  const clock = new ManualClock()
  const [a, b] = await Promise.all(DOCUMENTS.map((_id) => store.documents.findOne({ _id })))
  expect(await count({ store, clock }, countedVectors({ store }, a!), LIMIT - 1, LIMIT)).toBe('counted')
  expect(await count({ store, clock }, countedVectors({ store }, b!), 2, LIMIT)).toBe('over_limit')
  expect(await readUsage(store, ORGANIZATION)).toMatchObject({ vectors: LIMIT - 1, marks: {} })
})
