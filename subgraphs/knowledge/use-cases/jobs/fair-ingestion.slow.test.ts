import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTestIndex } from '../../../../test/support/data/knowledge-library.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { onEngine } from '../../../../test/support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from '../../../../test/support/engines/mongodb.ts'
import { openMongoDocumentStore } from '../../../../test/support/engines/open-mongodb.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { base64, createContext, depsOn, FakeInference, MemoryBlobStore, paragraphs, principal } from '../../../../test/support/knowledge.ts'
import { full, soaking } from '../../../../test/support/soak.ts'
import { openSqliteDocumentStore } from '../../../common/adapters/sqlite/documents/document-store.ts'
import type { DocumentStore } from '../../../common/ports/document-store.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { silentLog } from '../../../common/process/log.ts'
import { wakeUp } from '../../../common/process/wake-up.ts'
import type { Deps } from '../deps.ts'
import { createCollection } from '../documents/collections.ts'
import { createDocument, getDocument } from '../documents/documents.ts'
import { uploadFile } from '../files/files.ts'
import { work } from './work.ts'

/** Number of documents of the organization that floods the queue: 2,000 in `npm run soak`. */
const FLOOD = full(2_000)
const TIMEOUT_MS = soaking ? 1_800_000 : 120_000
/** Maximum documents of one organization that one process handles concurrently. */
const AT_ONCE = 2
/** Number of processes that share the store. */
const PROCESSES = 2

const folder = temporaryFolder()
const index = await openTestIndex()

const as = (organizationId: string, plan = principal.plan) =>
  createContext({ ...principal, organizationId, apiKeyId: `key of ${organizationId}`, plan })

/** Attaches documents whose texts start with the organization. Returns their IDs. */
async function attach(deps: Deps, organizationId: string, count: number, plan = principal.plan): Promise<readonly string[]> {
  const context = as(organizationId, plan)
  const collection = await createCollection(deps, context, { code: 'c', name: 'C', embeddingModel: 'embed' })
  const ids: string[] = []
  let next = 0
  const attachNext = async () => {
    while (next < count) {
      const i = next++
      const contentBase64 = base64(paragraphs(1, `${organizationId}n${i}n`))
      const file = await uploadFile(deps, context, { name: `${i}.txt`, contentBase64 })
      ids.push((await createDocument(deps, context, { collectionId: collection._id, fileId: file._id })).document._id)
    }
  }
  await Promise.all(Array.from({ length: 4 }, attachNext))
  return ids
}

/**
 * Starts processes on the store. Each document has one text, so the order of embedded texts is the order in which
 * documents end.
 */
function world(store: DocumentStore) {
  const inference = new FakeInference()
  const accounts = { findPrincipal: async (organizationId: string, apiKeyId: string) => ({ ...principal, organizationId, apiKeyId }) }
  const ingestionWeights = new Map([['heavy', 4]])
  const shared = { documents: store, blobs: new MemoryBlobStore(), index, inference, clock: systemClock, accounts, ingestionWeights }
  const embeddedOf = (organizationId: string) => [...inference.embedded.keys()].filter((text) => text.includes(`${organizationId}n`)).length
  const start = (count: number) => {
    const stopping = new AbortController()
    const working = Array.from({ length: count }, () => work(depsOn(shared), wakeUp(), { exclusive: false, backoffMs: 1 }, stopping.signal))
    return {
      async [Symbol.asyncDispose]() {
        stopping.abort(new Error('the service stops'))
        await Promise.all(working)
      },
    }
  }
  return { deps: depsOn(shared), inference, embeddedOf, start }
}

function suite(name: string, open: () => Promise<{ readonly store: DocumentStore; close(): Promise<void> }>) {
  describe(`Fair ingestion of ${FLOOD} documents, on ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close())

    it(
      'delays a document of another organization by those in flight and as many more',
      async () => {
        const { deps, inference, embeddedOf, start } = world(opened.store)
        await attach(deps, 'many', FLOOD)
        await using _processes = start(PROCESSES)
        await eventually(() => embeddedOf('many') > 5, TIMEOUT_MS)
        const [id] = await attach(deps, 'one', 1)
        const before = embeddedOf('many')
        await eventually(() => embeddedOf('one') === 1, TIMEOUT_MS)
        // Use the order, because more documents are embedded meanwhile.
        const texts = [...inference.embedded.keys()]
        const first = texts.findIndex((text) => text.includes('onen'))
        const earlier = texts.slice(0, first).filter((text) => text.includes('manyn'))
        expect(earlier.length).toBeLessThanOrEqual(before + 2 * AT_ONCE * PROCESSES)
        expect(before).toBeLessThan(FLOOD / 2)
        await eventually(async () => (await getDocument(deps, 'one', id!)).status === 'ready', TIMEOUT_MS)
      },
      TIMEOUT_MS,
    )
  })
}

suite('SQLite', async () => {
  const store = await openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
  return { store, close: async () => store[Symbol.asyncDispose]() }
})

await onEngine('KIS_TEST_MONGODB_URL', 'Fair ingestion, on MongoDB', (url) => {
  suite('MongoDB', async () => {
    const database = newDatabaseName()
    const store = await openMongoDocumentStore({ url, database, log: silentLog })
    return {
      store,
      async close() {
        await store[Symbol.asyncDispose]()
        await dropDatabases(url, database)
      },
    }
  })
})

it(
  'an organization of a heavier plan has more documents started in its turns',
  async () => {
    const store = await openSqliteDocumentStore({ file: join(folder, 'weights.sqlite'), log: silentLog })
    try {
      const { deps, inference, start } = world(store)
      await attach(deps, 'light', 24)
      await attach(deps, 'heavy', 24, { ...principal.plan, code: 'heavy' })
      await using _processes = start(1)
      await eventually(() => inference.embedded.size >= 30, TIMEOUT_MS)
      const first = [...inference.embedded.keys()].slice(0, 30)
      const heavy = first.filter((text) => text.includes('heavyn')).length
      // Most of the time, it has two of three used permits.
      expect(heavy).toBeGreaterThanOrEqual(17)
      expect(heavy).toBeLessThanOrEqual(23)
    } finally {
      await store[Symbol.asyncDispose]()
    }
  },
  TIMEOUT_MS,
)
