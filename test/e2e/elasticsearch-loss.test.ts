import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../support/catalog.ts'
import { addDocument, type Caller, callerOf, type Json, newCollection, newOrganization } from '../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../support/elasticsearch.ts'
import { onEngine } from '../support/engine-url.ts'
import { eventually } from '../support/eventually.ts'
import { type MockEngine, startMockEngine } from '../support/mock-engine.ts'
import { type Service, startEmbedded } from '../support/service.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

await onEngine(ELASTICSEARCH, 'the service when Elasticsearch is lost', (url) => {
  describe('the service when Elasticsearch is lost', () => {
    const { newPrefix, dropAll } = testIndices(url)
    let mock: MockEngine
    let proxy: TcpProxy
    let service: Service
    let caller: Caller
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await TcpProxy.start(url)
      const env = { KIS_ELASTICSEARCH_URL: proxy.url, KIS_ELASTICSEARCH_PREFIX: newPrefix(), KIS_ELASTICSEARCH_REPLICAS: '0' }
      service = await startEmbedded({ catalog: testCatalog(mock.url), env })
      caller = await newOrganization(callerOf(service, service.key), service)
    })
    afterAll(async () => {
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropAll()
    })

    const readiness = async () => (await fetch(`${service.rest}/readyz`)).status
    const chat = () =>
      caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

    it('refuses searches only, and forgets what is deleted meanwhile, without a restart', async () => {
      const collection = await newCollection(caller, 'mock-embed')
      const kept = await addDocument(caller, collection.id, 'kept.txt', 'The sultan keeps his letters in a cedar chest.')
      const doomed = await addDocument(caller, collection.id, 'doomed.txt', 'The letters of the sultan went down with the ship.')
      expect([kept.status, doomed.status]).toEqual(['ready', 'ready'])
      const search = () => caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'letters of the sultan' })
      const foundIn = ({ body }: { readonly body: Json }): string[] => body.data.map((hit: Json) => hit.document_id).sort()
      expect(foundIn(await search())).toEqual([kept.id, doomed.id].sort())
      expect(await readiness()).toBe(200)

      await proxy.stop()
      const refused = await search()
      expect([refused.status, refused.body.error?.code]).toEqual([503, 'service_unavailable'])
      expect([Number(refused.headers.get('retry-after')) > 0, refused.headers.get('x-should-retry')]).toEqual([true, 'true'])
      expect(await readiness()).toBe(503)
      expect((await chat()).status).toBe(200)
      // The deletion is written down before the index is asked, so it holds whatever this call answers.
      expect([200, 503]).toContain((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)).status)

      await proxy.resume()
      const answers = await Promise.all(Array.from({ length: 5 }, search))
      for (const answer of answers) expect([answer.status, answer.status === 200 && foundIn(answer)]).toEqual([200, [kept.id]])
      await eventually(async () => (await readiness()) === 200)
      expect(foundIn(await search())).toEqual([kept.id])
    }, 60_000)
  })
})
