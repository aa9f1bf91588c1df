import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../support/catalog.ts'
import { balancedWallet, type Caller, callerOf, newCollection, newOrganization } from '../support/client.ts'
import { onEngine } from '../support/engine-url.ts'
import { eventually } from '../support/eventually.ts'
import { type MockEngine, startMockEngine } from '../support/mock-engine.ts'
import { dropDatabases, newDatabaseName, withDatabase } from '../support/mongodb.ts'
import { MongoProxy } from '../support/mongodb-proxy.ts'
import { type Service, startEmbedded } from '../support/service.ts'

/** A probe that asks for this long has its answer: the stores are given 2 s to answer a ping. */
const READINESS_MS = 5_000

await onEngine('KIS_TEST_MONGODB_URL', 'the service when MongoDB is lost', (url) => {
  describe('the service when MongoDB is lost', () => {
    const database = newDatabaseName()
    let mock: MockEngine
    let proxy: MongoProxy
    let service: Service
    let caller: Caller
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await MongoProxy.start(url)
      const env = { KIS_MONGODB_URL: withDatabase(proxy.through(url), database) }
      service = await startEmbedded({ catalog: testCatalog(mock.url), env })
      caller = await newOrganization(callerOf(service, service.key), service)
    }, 60_000)
    afterAll(async () => {
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropDatabases(url, `${database}_billing`, `${database}_knowledge`)
    })

    const readiness = async () => {
      const response = await fetch(`${service.rest}/readyz`, { signal: AbortSignal.timeout(READINESS_MS) })
      return { status: response.status, body: await response.json() }
    }
    const chat = () =>
      caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

    it('refuses what needs it with a time to come again, calls no engine, and works when it is back, without a restart', async () => {
      const collection = await newCollection(caller)
      expect((await chat()).status).toBe(200)
      const asked = mock.requests.length
      expect(await readiness()).toMatchObject({ status: 200 })

      await proxy.stop()
      expect(await readiness()).toMatchObject({ status: 503, body: { problems: expect.arrayContaining(['document store']) } })
      const refused = await Promise.all([
        chat(),
        caller.rest('GET', `/v1/collections/${collection.id}`),
        caller.rest('POST', '/v1/files', { file_name: 'a.txt', content_base64: 'YQ==' }),
        caller.rest('GET', '/v1/wallet'),
      ])
      for (const { status, body, headers } of refused) {
        expect([status, body.error?.code]).toEqual([503, 'service_unavailable'])
        expect([Number(headers.get('retry-after')) > 0, headers.get('x-should-retry')]).toEqual([true, 'true'])
      }
      expect(mock.requests).toHaveLength(asked)
      expect((await fetch(`${service.rest}/healthz`)).status).toBe(200)

      await proxy.resume()
      await eventually(async () => (await readiness()).status === 200, 30_000)
      expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).body).toEqual(collection)
      expect((await chat()).status).toBe(200)
      await balancedWallet(caller)
    }, 90_000)
  })
})
