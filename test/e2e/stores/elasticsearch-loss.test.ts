import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  balancedWallet,
  base64,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { ELASTICSEARCH, testIndices } from '../../support/engines/elasticsearch.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { kis } from '../../support/processes/cli.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

await onEngine(ELASTICSEARCH, 'Loss of Elasticsearch', (url) => {
  describe('Loss of Elasticsearch', () => {
    const { newPrefix, dropAll } = testIndices(url)
    let mock: MockEngine
    let proxy: TcpProxy
    let service: Service
    let caller: Caller
    let prefix: string
    const clockFile = join(tmpdir(), `kis-clock-${process.pid}`)
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await TcpProxy.start(url)
      prefix = newPrefix()
      const env = {
        KIS_ELASTICSEARCH_URL: proxy.url,
        KIS_ELASTICSEARCH_PREFIX: prefix,
        KIS_ELASTICSEARCH_REPLICAS: '0',
        NODE_OPTIONS: `--import=${new URL('../../support/processes/set-clock.mjs', import.meta.url)}`,
        KIS_TEST_CLOCK_FILE: clockFile,
      }
      service = await startEmbedded({ catalog: mockCatalog(mock.url), env })
      caller = await newOrganization(createCaller(service, service.key), service)
    })
    afterAll(async () => {
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropAll()
    })

    const engine = async (method: string, path: string, body?: unknown): Promise<Json> => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}/${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
      expect(response.ok).toBe(true)
      return response.json()
    }
    const listEntries = async (documentId: string): Promise<Json[]> => {
      const query = { term: { document_id: documentId } }
      return (await engine('POST', `${prefix}-chunks/_search`, { query, _source: { exclude_vectors: false } })).hits.hits
    }

    const readiness = async () => (await fetch(`${service.rest}/readyz`)).status
    const chat = () =>
      caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

    const searchIn = (collection: Json) => () =>
      caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'letters of the sultan' })
    const foundIn = ({ body }: { readonly body: Json }): string[] => body.data.map((hit: Json) => hit.document_id).sort()
    /** Attached, and left to the workers. */
    const attach = async (collection: Json, fileName: string, text: string) => {
      const uploaded = await caller.rest('POST', '/v1/files', { file_name: fileName, content_base64: base64(text) })
      const attached = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: uploaded.body.message.id })
      expect([uploaded.status, attached.status]).toEqual([201, 201])
      return attached.body
    }

    // The first: it counts all that is there.
    it('serves chats, never returns deleted chunks from a stale index, and is repaired with nothing missing and nothing extra', async () => {
      const collection = await newCollection(caller, 'mock-embed')
      const add = (name: string, text: string) => addDocument(caller, collection.id, name, text)
      const remaining = await add('kept.txt', 'The sultan keeps his letters in a cedar chest.')
      const lost = await add('lost.txt', 'Letters arrive on Tuesdays and are read aloud.')
      const doomed = await add('doomed.txt', 'The letters of the sultan went down with the ship.')
      const search = searchIn(collection)
      const found = async () => {
        const { status, body } = await search()
        expect(status).toBe(200)
        return body.data.map((hit: Json) => hit.document_id).sort()
      }
      const verify = (...args: string[]) => kis(service, service.key, 'verify', ...args)
      expect(await found()).toEqual([remaining.id, lost.id, doomed.id].sort())
      expect(await verify()).toMatchObject({ code: 0, errors: '' })

      // The state that comes back: as it was before the deletion, and without what came last.
      const old = await listEntries(doomed.id)
      expect(old).toHaveLength(1)
      await proxy.stop()
      expect((await chat()).status).toBe(200)
      expect((await search()).status).toBe(503)
      await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)
      await engine('POST', `${prefix}-chunks/_delete_by_query?refresh=true`, { query: { term: { document_id: lost.id } } })
      await proxy.resume()
      expect(await found()).toEqual([remaining.id])
      // As long as the call that failed keeps its lease of the deletion.
      writeFileSync(clockFile, '60000')
      process.kill(service.processes.get('all')!.pid, 'SIGUSR2')
      await eventually(async () => (await listEntries(doomed.id)).length === 0, 60_000)
      // The deletion that waited for the engine may look at it once more, and is over when it leaves this alone.
      await eventually(async () => {
        for (const { _index, _id, _routing, _source } of old)
          await engine('PUT', `${_index}/_doc/${encodeURIComponent(_id)}?routing=${_routing}&refresh=true`, _source)
        await new Promise((resolve) => setTimeout(resolve, 2_000))
        return (await listEntries(doomed.id)).length === 1
      }, 60_000)
      await engine('PUT', `${old[0]._index}/_doc/x?routing=col_x&refresh=true`, { ...old[0]._source, collection_id: 'col_x' })
      expect(await found()).toEqual([remaining.id])

      const said = await verify()
      expect([said.code, said.lines.slice(-4)]).toEqual([
        1,
        [
          `extra ${collection.id} ${doomed.id} g1: 1 extra chunks`,
          `missing ${collection.id} ${lost.id} g1: 0 of 1 chunks`,
          'extra col_x: 1 extra chunks',
          '1 collections, 2 documents, 3 chunks: 1 missing, 0 incomplete, 2 extra, 0 being repaired',
        ],
      ])
      const repaired = await verify('--repair')
      expect([repaired.code, repaired.lines.at(-1)]).toEqual([
        0,
        '1 collections, 2 documents, 2 chunks: 0 missing, 0 incomplete, 0 extra, 0 being repaired',
      ])
      expect(await found()).toEqual([remaining.id, lost.id].sort())
      expect(await listEntries(doomed.id)).toEqual([])
    }, 180_000)

    it('refuses only searches, and purges what is deleted meanwhile, without a restart', async () => {
      const collection = await newCollection(caller, 'mock-embed')
      const kept = await addDocument(caller, collection.id, 'kept.txt', 'The sultan keeps his letters in a cedar chest.')
      const doomed = await addDocument(caller, collection.id, 'doomed.txt', 'The letters of the sultan went down with the ship.')
      expect([kept.status, doomed.status]).toEqual(['ready', 'ready'])
      const search = searchIn(collection)
      expect(foundIn(await search())).toEqual([kept.id, doomed.id].sort())
      expect(await readiness()).toBe(200)

      await proxy.stop()
      const refused = await search()
      expect([refused.status, refused.body.error?.code]).toEqual([503, 'service_unavailable'])
      expect([Number(refused.headers.get('retry-after')) > 0, refused.headers.get('x-should-retry')]).toEqual([true, 'true'])
      expect(await readiness()).toBe(503)
      expect((await chat()).status).toBe(200)
      expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).body).toMatchObject({ id: collection.id, document_count: 2 })
      const waiting = await attach(collection, 'waiting.txt', 'A sultan waits for letters.')
      // The deletion is written down before the index is asked, so it holds whatever this call answers.
      expect([200, 503]).toContain((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)).status)

      await proxy.resume()
      const responses = await Promise.all(Array.from({ length: 5 }, search))
      for (const answer of responses) {
        expect(answer.status).toBe(200)
        expect(foundIn(answer)).toContain(kept.id)
        expect(foundIn(answer)).not.toContain(doomed.id)
      }
      await eventually(async () => (await readiness()) === 200)
      expect(await settled(caller, collection.id, waiting.id)).toMatchObject({ status: 'ready' })
      expect(foundIn(await search())).toEqual([kept.id, waiting.id].sort())
    }, 60_000)

    it('continues to search on a full disk, and completes pending work when there is room, without a restart', async () => {
      const collection = await newCollection(caller, 'mock-embed')
      const search = searchIn(collection)
      const kept = await addDocument(caller, collection.id, 'kept.txt', 'The sultan keeps his letters in a cedar chest.')
      const doomed = await addDocument(caller, collection.id, 'doomed.txt', 'The letters of the sultan went down with the ship.')
      const isFull = async (value: true | null) => {
        const headers = { 'content-type': 'application/json' }
        const body = JSON.stringify({ 'index.blocks.read_only_allow_delete': value })
        expect((await fetch(`${url}/${prefix}-*/_settings`, { method: 'PUT', headers, body })).status).toBe(200)
      }
      await isFull(true)
      const waiting = await attach(collection, 'waiting.txt', 'A sultan waits for letters.')
      const collections = { collection_code: 'full', collection_name: 'Full', embedding_model: 'mock-embed' }
      const refused = await caller.rest('POST', '/v1/collections', collections)
      expect([refused.status, refused.body.error?.code, Number(refused.headers.get('retry-after')) > 0]).toEqual([
        503,
        'service_unavailable',
        true,
      ])
      expect([200, 503]).toContain((await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${doomed.id}`)).status)
      expect(foundIn(await search())).toEqual([kept.id])
      expect(await readiness()).toBe(200)
      // Longer than a failing engine would be given.
      const document = async () => (await caller.rest('GET', `/v1/collections/${collection.id}/documents/${waiting.id}`)).body
      await eventually(async () => (await document()).attempts > 8, 60_000)
      expect(['queued', 'processing']).toContain((await document()).status)

      await isFull(null)
      expect(await settled(caller, collection.id, waiting.id)).toMatchObject({ status: 'ready', chunk_count: 1, error: null })
      expect(foundIn(await search())).toEqual([kept.id, waiting.id].sort())
      expect((await caller.rest('POST', '/v1/collections', collections)).status).toBe(201)
      // The embedding that is in the index is charged, and none of those that were not put there.
      await balancedWallet(caller)
      const embedded = (await caller.rest('GET', '/v1/usage?limit=100')).body.data.filter(
        (record: Json) => record.request_id === waiting.id,
      )
      expect(embedded).toMatchObject([{ operation: 'embedding', input_tokens: 10 }])
    }, 120_000)
  })
})
