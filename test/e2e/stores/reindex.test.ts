import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, type Json, makeCaller, newCollection, newOrganization } from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { paragraphs } from '../../support/knowledge.ts'
import { kis } from '../../support/processes/cli.ts'
import { type Service, type ServiceOptions, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

/** More chunks together than a rebuild takes over in one step. */
const ANCHORS = 6
const PARAGRAPHS = 50
const TIMEOUT_MS = 300_000

/** A document's own word is nobody else's. */
const makeWord = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 16)
const makeText = (name: string, count: number) => `${makeWord(name)} stands here alone.\n\n${paragraphs(count, name)}`

/**
 * Each waits for searches that may still be under way, so the two run at once. `midway` runs while an index is rebuilt
 * without load; what it does must not keep the rebuild from its end.
 */
function reindexUnderLoad(
  name: string,
  start: (options: ServiceOptions) => Promise<Service & { readonly midway?: () => Promise<unknown> }>,
): void {
  describe.concurrent(`kis reindex, ${name}`, () => {
    let mock: MockEngine
    let service: Awaited<ReturnType<typeof start>>
    let caller: Caller
    let collection: Json
    beforeAll(async () => {
      mock = await startMockEngine()
      service = await start({ catalog: mockCatalog(mock.url) })
      caller = await newOrganization(makeCaller(service, service.key), service, { creditUsd: '100' })
      collection = await newCollection(caller, 'mock-embed')
    }, TIMEOUT_MS)
    afterAll(async () => {
      await service?.close()
      await mock?.[Symbol.asyncDispose]()
    })

    /** The documents found by one's own word, the best first. */
    const find = async (document: string, mode: 'hybrid' | 'lexical'): Promise<string[]> => {
      const asked = { query: makeWord(document), limit: 5, mode }
      const { status, body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, asked)
      expect([status, body.error]).toEqual([200, undefined])
      return body.data.map((hit: Json) => hit.file.file_name)
    }
    const add = async (document: string, count = 2) => {
      const added = await addDocument(caller, collection.id, document, makeText(document, count))
      expect([added.status, added.error]).toEqual(['ready', null])
      return added.id as string
    }

    it('fails no search and no upload meanwhile, and ends with nothing missing and nothing extra', {
      concurrent: false,
      timeout: TIMEOUT_MS,
    }, async () => {
      const anchors = Array.from({ length: ANCHORS }, (_, i) => `anchor${i}`)
      for (const anchor of anchors) await add(anchor, PARAGRAPHS)
      const kept: string[] = []
      const deleted: string[] = []
      let isOver = false
      const counts = { searches: 0, uploads: 0 }
      const searching = async () => {
        while (!isOver) {
          const anchor = anchors[counts.searches++ % anchors.length]!
          expect(await find(anchor, 'lexical')).toContain(anchor)
          // The mock's vectors mean nothing, so only the number of hits is known.
          expect(await find(anchor, 'hybrid')).toHaveLength(5)
        }
      }
      const uploading = async () => {
        while (!isOver) {
          const document = `late${counts.uploads++}`
          const id = await add(document)
          expect(await find(document, 'lexical')).toContain(document)
          if (counts.uploads % 3) kept.push(document)
          else {
            const { status } = await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${id}`)
            expect(status).toBe(200)
            deleted.push(document)
          }
        }
      }
      const reindexing = kis(service, service.key, 'reindex').finally(() => {
        isOver = true
      })
      const [{ code, lines, errors }] = await Promise.all([reindexing, searching(), uploading()])
      expect([code, errors, lines.at(-1)]).toEqual([0, '', expect.stringContaining(': 0 missing, 0 incomplete, 0 extra, 0 being repaired')])
      expect(Number(lines[0]!.split(' ')[0])).toBeGreaterThan(ANCHORS * PARAGRAPHS)
      expect(counts.searches).toBeGreaterThan(5)
      for (const document of [...anchors, ...kept]) expect(await find(document, 'lexical')).toContain(document)
      for (const document of deleted) expect(await find(document, 'lexical')).not.toContain(document)
      expect((await kis(service, service.key, 'verify')).code).toBe(0)
    })

    it('comes to its end all the same when it is interrupted', { concurrent: false, timeout: TIMEOUT_MS }, async () => {
      await add('another')
      const [{ code, errors }] = await Promise.all([kis(service, service.key, 'reindex', '--json'), service.midway?.()])
      expect([code, errors]).toEqual([0, ''])
      expect(await find('another', 'lexical')).toContain('another')
    })
  })
}

reindexUnderLoad('one process on its own files', startEmbedded)

const DISTRIBUTED = 'two replicas of knowledge on MongoDB and Elasticsearch'
await onEngine(ELASTICSEARCH, DISTRIBUTED, (elasticsearch) =>
  onEngine('KIS_TEST_MONGODB_URL', DISTRIBUTED, (mongodb) => {
    const { newPrefix, dropAll } = testIndices(elasticsearch)
    reindexUnderLoad(DISTRIBUTED, async (options) => {
      const database = newDatabaseName()
      const env = {
        KIS_MONGODB_URL: withDatabase(mongodb, database),
        KIS_ELASTICSEARCH_URL: elasticsearch,
        KIS_ELASTICSEARCH_PREFIX: newPrefix(),
        KIS_ELASTICSEARCH_REPLICAS: '0',
      }
      const service = await startFiveProcesses({ ...options, env: { ...options.env, ...env }, replicas: { knowledge: 2 } })
      return {
        ...service,
        midway: () => service.restart('knowledge-1', 'SIGKILL'),
        async close() {
          await service.close()
          await dropServiceDatabases(mongodb, database)
          await dropAll()
        },
      }
    })
  }),
)
