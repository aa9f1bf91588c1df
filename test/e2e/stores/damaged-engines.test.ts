import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { CorruptionTable, type Shown } from '../../support/docs/corruption-table.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { DISK_FULL, MongoProxy, NO_PRIMARY, NO_RIGHTS, type Refusal } from '../../support/engines/mongodb-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { startInTurn } from '../../support/processes/starts.ts'

const TIMEOUT_MS = 120_000
const ENDED = { readyz: null, call: null, verify: null }

/** A start of an installation of its own, whose data folder and catalog are in `place`. */
function startIn(place: string, mock: MockEngine, env: Readonly<Record<string, string>>): Promise<string | null> {
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'catalog.yaml'), mockCatalog(mock.url))
  return startInTurn({ KIS_DATA_DIR: join(place, 'data'), KIS_CATALOG: join(place, 'catalog.yaml'), ...env })
}

await onEngine('KIS_TEST_MONGODB_URL', 'MongoDB that is full, closed or of another installation', (url) => {
  describe('MongoDB that is full, closed or of another installation', { timeout: TIMEOUT_MS }, () => {
    const database = newDatabaseName()
    const table = new CorruptionTable()
    let mock: MockEngine
    let proxy: MongoProxy
    let service: Service
    let folder: string
    let caller: Caller
    let env: Readonly<Record<string, string>>
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await MongoProxy.start(url)
      env = { KIS_MONGODB_URL: withDatabase(proxy.through(url), database) }
      folder = mkdtempSync(join(tmpdir(), 'kis-test-'))
      service = await startEmbedded({ catalog: mockCatalog(mock.url), env, folder })
      caller = await newOrganization(createCaller(service, service.key), service)
    }, TIMEOUT_MS)
    afterAll(async () => {
      table.check()
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropServiceDatabases(url, database)
      rmSync(folder, { recursive: true, force: true })
    })

    const readiness = async () => {
      const response = await fetch(`${service.rest}/readyz`)
      return { status: response.status, problems: ((await response.json()) as { problems: string[] }).problems }
    }
    const chat = () =>
      caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

    it.each<{ what: string; refused: Refusal; problem: string; repair: string }>([
      { what: 'full disk', refused: DISK_FULL, problem: 'document store: the disk is full', repair: 'make room; no restart' },
      { what: 'read-only', refused: NO_PRIMARY, problem: 'document store', repair: 'make it writable; no restart' },
      { what: 'no rights to write', refused: NO_RIGHTS, problem: 'document store', repair: 'give the user its rights; no restart' },
    ])('$what while running: /readyz and the call report it, and the service recovers', async ({ what, refused, problem, repair }) => {
      expect((await chat()).status).toBe(200)
      const calls = mock.chats
      proxy.refusal = refused
      try {
        const response = await chat()
        expect([response.status, response.body.error?.code]).toEqual([503, 'service_unavailable'])
        await eventually(async () => {
          const { status, problems } = await readiness()
          return status === 503 && problems.includes(problem)
        })
        expect(mock.chats).toBe(calls)
        const shown: Shown = { log: 'not ready', readyz: `503 ${problem}`, call: '503 service_unavailable', repair }
        table.note('MongoDB', what, shown)
      } finally {
        proxy.refusal = null
      }
      await eventually(async () => (await readiness()).status === 200, TIMEOUT_MS)
      await eventually(async () => (await chat()).status === 200, TIMEOUT_MS)
    })

    it('is not used by another installation, nor by a program that is too old for it', async () => {
      const other = await startIn(join(folder, 'other'), mock, env)
      expect(other).toMatch(/The data was created with another secret: .*KIS_SECRET/)
      table.note(
        'MongoDB',
        'of another installation',
        { ...ENDED, log: other!, repair: 'name another database in `KIS_MONGODB_URL`' },
        database,
      )
      await using client = new MongoClient(url)
      const versions = client.db(`${database}_billing`).collection<{ _id: string; version: number }>('schema_versions')
      await versions.updateOne({ _id: 'wallets' }, { $set: { version: 99 } }, { upsert: true })
      await service.close()
      const newer = await startIn(folder, mock, env)
      expect(newer).toMatch(/has documents of the kind wallets in version 99; this program knows \d+/)
      table.note('MongoDB', 'of a newer version', { ...ENDED, log: newer!, repair: 'start the newer version' }, database)
    })
  })
})

await onEngine(ELASTICSEARCH, 'Elasticsearch of another installation', (url) => {
  describe('Elasticsearch of another installation', { timeout: TIMEOUT_MS }, () => {
    const { newPrefix, dropAll } = testIndices(url)
    const table = new CorruptionTable()
    afterAll(async () => {
      table.check()
      await dropAll()
    })

    it('ends the start with the names of both installations', async () => {
      await using mock = await startMockEngine()
      const prefix = newPrefix()
      const env = { KIS_ELASTICSEARCH_URL: url, KIS_ELASTICSEARCH_PREFIX: prefix, KIS_ELASTICSEARCH_REPLICAS: '0' }
      const folder = mkdtempSync(join(tmpdir(), 'kis-test-'))
      expect(await startIn(join(folder, 'first'), mock, env)).toBe(null)
      const said = await startIn(join(folder, 'second'), mock, env)
      rmSync(folder, { recursive: true })
      expect(said).toMatch(/in Elasticsearch belongs to the installation inst_/)
      table.note(
        'Elasticsearch',
        'of another installation',
        { ...ENDED, log: said!, repair: 'set another `KIS_ELASTICSEARCH_PREFIX`' },
        prefix,
      )
    })
  })
})
