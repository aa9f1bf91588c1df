import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, type Json, makeCaller, newCollection, newOrganization } from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { kis } from '../../support/processes/cli.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

await onEngine(ELASTICSEARCH, 'the service when Elasticsearch comes back with a stale index', (url) => {
  describe('the service when Elasticsearch comes back with a stale index', () => {
    const { newPrefix, dropAll } = testIndices(url)
    const prefix = newPrefix()
    let mock: MockEngine
    let proxy: TcpProxy
    let service: Service
    let caller: Caller
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await TcpProxy.start(url)
      const env = { KIS_ELASTICSEARCH_URL: proxy.url, KIS_ELASTICSEARCH_PREFIX: prefix, KIS_ELASTICSEARCH_REPLICAS: '0' }
      service = await startEmbedded({ catalog: mockCatalog(mock.url), env })
      caller = await newOrganization(makeCaller(service, service.key), service)
    })
    afterAll(async () => {
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropAll()
    })

    const engine = async (method: string, path: string, body?: unknown): Promise<Json> => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
      expect(answer.ok).toBe(true)
      return answer.json()
    }
    const listEntries = async (documentId: string): Promise<Json[]> => {
      const query = { term: { document_id: documentId } }
      return (await engine('POST', `${prefix}-chunks/_search`, { query, _source: { exclude_vectors: false } })).hits.hits
    }

    it('answers chats meanwhile, never gives what is deleted, and is repaired to nothing missing and nothing extra', async () => {
      const collection = await newCollection(caller, 'mock-embed')
      const add = (name: string, text: string) => addDocument(caller, collection.id, name, text)
      const kept = await add('kept.txt', 'The sultan keeps his letters in a cedar chest.')
      const lost = await add('lost.txt', 'Letters arrive on Tuesdays and are read aloud.')
      const doomed = await add('doomed.txt', 'The letters of the sultan went down with the ship.')
      const search = () => caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'letters of the sultan' })
      const found = async () => {
        const { status, body } = await search()
        expect(status).toBe(200)
        return body.data.map((hit: Json) => hit.document_id).sort()
      }
      const verify = (...args: string[]) => kis(service, service.key, 'verify', ...args)
      expect(await found()).toEqual([kept.id, lost.id, doomed.id].sort())
      expect(await verify()).toMatchObject({ code: 0, errors: '' })

      // The state that comes back: as it was before the deletion, and without what came last.
      const old = await listEntries(doomed.id)
      expect(old).toHaveLength(1)
      await proxy.stop()
      const messages = [{ role: 'user', content: 'Good morning' }]
      expect((await caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages })).status).toBe(200)
      expect((await search()).status).toBe(503)
      await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)
      await engine('POST', `${prefix}-chunks/_delete_by_query?refresh=true`, { query: { term: { document_id: lost.id } } })
      await proxy.resume()
      expect(await found()).toEqual([kept.id])
      // The call that failed keeps its lease of the deletion for 30 s.
      await eventually(async () => (await listEntries(doomed.id)).length === 0, 60_000)
      // The deletion that waited for the engine may look at it once more, and is over when it leaves this alone.
      await eventually(async () => {
        for (const { _index, _id, _routing, _source } of old)
          await engine('PUT', `${_index}/_doc/${encodeURIComponent(_id)}?routing=${_routing}&refresh=true`, _source)
        await new Promise((resolve) => setTimeout(resolve, 2_000))
        return (await listEntries(doomed.id)).length === 1
      }, 60_000)
      await engine('PUT', `${old[0]._index}/_doc/x?routing=col_x&refresh=true`, { ...old[0]._source, collection_id: 'col_x' })
      expect(await found()).toEqual([kept.id])

      const said = await verify()
      expect([said.code, said.lines.slice(-4)]).toEqual([
        1,
        [
          `extra ${collection.id} ${doomed.id} g1: 1 chunks too many`,
          `missing ${collection.id} ${lost.id} g1: 0 of 1 chunks`,
          'extra col_x: 1 chunks too many',
          '1 collections, 2 documents, 3 chunks: 1 missing, 0 incomplete, 2 extra, 0 being repaired',
        ],
      ])
      const repaired = await verify('--repair')
      expect([repaired.code, repaired.lines.at(-1)]).toEqual([
        0,
        '1 collections, 2 documents, 2 chunks: 0 missing, 0 incomplete, 0 extra, 0 being repaired',
      ])
      expect(await found()).toEqual([kept.id, lost.id].sort())
      expect(await listEntries(doomed.id)).toEqual([])
    }, 180_000)
  })
})
