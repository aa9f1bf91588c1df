import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openElasticsearchChunkIndex } from '../../subgraphs/knowledge/adapters/elasticsearch/chunk-index.ts'
import { termMark } from '../../subgraphs/knowledge/adapters/elasticsearch/term-counts.ts'
import type { ChunkIndex, IndexedChunk, ToTerms } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import type { Json } from '../support/client.ts'
import { plainChunk } from '../support/data/chunks.ts'
import { ELASTICSEARCH, testIndices } from '../support/engines/elasticsearch.ts'
import { onEngine } from '../support/engines/engine-url.ts'

const collection = { organizationId: 'org_a', collectionId: 'col_a', dimensions: 8 }
const document = { organizationId: 'org_a', collectionId: 'col_a', documentId: 'doc_1', generation: 'g1', attributes: { language: 'en' } }
const signal = new AbortController().signal
const toTerms: ToTerms = async (chunks) => chunks.map(({ text, context }) => ({ words: `${context} ${text}`.split(' '), grams: [] }))

function createChunk(ordinal: number, text: string): IndexedChunk {
  const vector = Float32Array.from({ length: 8 }, (_, i) => (i === ordinal % 8 ? 1 : 0))
  const more = { context: 'about', headingPath: ['A', 'B'], vector, words: text.split(' '), grams: [] }
  return plainChunk(`chunk-${ordinal}`, ordinal, text, more)
}

async function rebuilt(index: ChunkIndex): Promise<void> {
  let after: string | null = null
  do after = (await index.rebuild(after, toTerms, signal)).next
  while (after !== null)
}

const found = async (index: ChunkIndex, word: string) => {
  const query = { collectionId: 'col_a', vector: null, words: [word], grams: [], candidates: 100, filter: null }
  return (await index.search(query, signal)).map(({ chunkId }) => chunkId).sort()
}

await onEngine(ELASTICSEARCH, 'Rebuild of an Elasticsearch index', (url) => {
  // Each test waits until the old index may go, and has indices of its own.
  describe.concurrent('Rebuild of an Elasticsearch index', () => {
    const { newPrefix, dropAll } = testIndices(url)
    const servers: Server[] = []
    afterAll(async () => {
      for (const server of servers) server.close()
      await dropAll()
    })
    const open = (prefix: string, at = url, shards = 1) =>
      openElasticsearchChunkIndex({ url: at, prefix, size: { shards, replicas: 0 }, log: silentLog })
    const engine = async (method: string, path: string, body?: unknown): Promise<Json> => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}/${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
      expect(response.ok).toBe(true)
      return response.json()
    }
    const listIndices = async (prefix: string) => Object.keys(await engine('GET', `${prefix}-chunks-*`)).sort()

    it('ends in one new index, of the size that is configured now', async () => {
      const prefix = newPrefix()
      await using index = await open(prefix)
      await index.createCollection(collection)
      await index.put(document, [createChunk(0, 'harbour')])
      await using larger = await open(prefix, url, 3)
      await rebuilt(larger)
      expect(await listIndices(prefix)).toEqual([`${prefix}-chunks-8-2`])
      const settings = await engine('GET', `${prefix}-chunks-8-2/_settings`)
      expect(settings[`${prefix}-chunks-8-2`].settings.index.number_of_shards).toBe('3')
      expect(await engine('GET', `${prefix}-chunks-8-2/_alias`)).toEqual({
        [`${prefix}-chunks-8-2`]: { aliases: { [`${prefix}-chunks`]: {}, [`${prefix}-chunks-8`]: { is_write_index: true } } },
      })
      await index.createCollection({ ...collection, collectionId: 'col_b' })
      await rebuilt(index)
      expect(await listIndices(prefix)).toEqual([`${prefix}-chunks-8-3`])
      expect([await found(index, 'harbour'), await found(index, 'about')]).toEqual([['chunk-0'], ['chunk-0']])
    }, 120_000)

    /** The engine, except that the first request whose path ends so waits for `before` and goes to `path`. */
    async function detour(ending: string, path: string, before: () => Promise<void>): Promise<string> {
      let isOver = false
      const { hostname, port } = new URL(url)
      const server = createServer(async (incoming, outgoing) => {
        let target = incoming.url!
        if (!isOver && target.split('?')[0]!.endsWith(ending)) {
          isOver = true
          await before()
          target = path
        }
        const { method = 'GET', headers } = incoming
        const upstream = request(
          { hostname, port, path: target, method, headers: { ...headers, host: `${hostname}:${port}` } },
          (response) => {
            outgoing.writeHead(response.statusCode!, response.headers)
            response.pipe(outgoing)
          },
        )
        upstream.on('error', () => outgoing.destroy())
        incoming.pipe(upstream)
      }).listen(0, '127.0.0.1')
      servers.push(server)
      await once(server, 'listening')
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    }

    it('preserves a write that reached the old index after it was copied', async () => {
      const prefix = newPrefix()
      await using index = await open(prefix)
      await index.createCollection(collection)
      await index.put(document, [createChunk(0, 'harbour')])
      let after: string | null = null
      // A node that does not know yet of the new index sends the write to the old one, which has been copied.
      const late = await detour('_bulk', `/${prefix}-chunks-8-1/_bulk?refresh=wait_for&routing=col_a`, async () => {
        for (let i = 0; i < 2; i++) after = (await index.rebuild(after, toTerms, signal)).next
      })
      await using writer = await open(prefix, late)
      await writer.put(document, [createChunk(1, 'harbour')])
      while (after !== null) after = (await index.rebuild(after, toTerms, signal)).next
      expect(await found(index, 'harbour')).toEqual(['chunk-0', 'chunk-1'])
      expect(await index.ordinals('col_a', 'doc_1', 'g1')).toEqual([0, 1])
      expect(await listIndices(prefix)).toEqual([`${prefix}-chunks-8-2`])
    }, 120_000)

    it('preserves nothing of a document that was being deleted while it was copied', async () => {
      const prefix = newPrefix()
      await using index = await open(prefix)
      await index.createCollection(collection)
      await index.put(document, [createChunk(0, 'harbour')])
      let after: string | null = null
      // The deletion had looked at the old index alone; it deletes there what has been copied and replaced since.
      const slow = await detour('_delete_by_query', `/${prefix}-chunks-8-1/_delete_by_query?refresh=true&routing=col_a`, async () => {
        for (let i = 0; i < 3; i++) after = (await index.rebuild(after, toTerms, signal)).next
      })
      await using deleter = await open(prefix, slow)
      await deleter.deleteDocument('col_a', 'doc_1')
      expect(await index.listGenerations('col_a', '', 10)).toEqual([])
      expect(await found(index, 'harbour')).toEqual([])
      expect(Object.keys(await engine('GET', `${prefix}-chunks/_alias`))).toEqual([`${prefix}-chunks-8-2`])
    }, 120_000)

    for (const { layout, lacks, context } of [
      { layout: 'the first', lacks: ['context', 'copied', 'token_states'], context: null },
      { layout: 'an earlier', lacks: [], context: 'about' },
    ]) {
      it(`migrates ${layout} layout to the current one`, async () => {
        const prefix = newPrefix()
        const other = { ...document, documentId: 'doc_2' }
        const first = `${prefix}-chunks-8-1`
        {
          await using index = await open(prefix)
          await index.createCollection(collection)
          await index.put(document, [createChunk(0, 'harbour')])
          await index.put(other, [createChunk(2, 'sultan')])
        }
        // As it was: terms were keywords, small vectors lay beside the server's, and the graph had other parameters.
        const { [first]: created } = await engine('GET', first)
        const properties = structuredClone(created.mappings.properties)
        for (const name of lacks) delete properties[name]
        properties.words = properties.grams = { type: 'keyword', doc_values: false, similarity: 'boolean' }
        properties.small_vector = { type: 'binary', doc_values: true }
        properties.vector.index_options = { type: 'int8_hnsw', m: 8, ef_construction: 50 }
        const { hits } = (await engine('POST', `${first}/_search`, { _source: { exclude_vectors: false, excludes: lacks } })).hits
        await engine('DELETE', first)
        await engine('PUT', first, {
          settings: { number_of_shards: 1, number_of_replicas: 0, refresh_interval: '200ms' },
          mappings: { ...created.mappings, properties },
          aliases: created.aliases,
        })
        for (const { _id, _source } of hits) {
          const terms = { words: _source.text.split(' ').map((word: string) => termMark('col_a') + word), grams: [] }
          const entry = { ..._source, ...terms, small_vector: Buffer.alloc(8, 127).toString('base64') }
          await engine('PUT', `${first}/_doc/${encodeURIComponent(_id)}?routing=col_a&refresh=true`, entry)
        }

        const warnings: string[] = []
        const log = Object.assign(Object.create(silentLog), { warn: (_fields: unknown, message: string) => void warnings.push(message) })
        await using index = await openElasticsearchChunkIndex({ url, prefix, size: { shards: 1, replicas: 0 }, log })
        expect(warnings).toEqual([expect.stringContaining('kis reindex')])
        expect(await found(index, 'harbour')).toEqual(['chunk-0'])
        await index.put(document, [createChunk(1, 'harbour')])
        await index.setAttributes(document, toTerms)
        expect(await found(index, 'harbour')).toEqual(['chunk-0', 'chunk-1'])
        const contexts: (string | null)[] = []
        const noted: ToTerms = (chunks) => {
          contexts.push(...chunks.map((chunk) => chunk.context))
          return toTerms(chunks)
        }
        let after = (await index.rebuild(null, noted, signal)).next
        // Its entry goes into the new index.
        await index.setAttributes(other, toTerms)
        while (after !== null) after = (await index.rebuild(after, noted, signal)).next
        expect(contexts).toEqual([context, 'about'])
        expect(await found(index, 'harbour')).toEqual(['chunk-0', 'chunk-1'])
        expect(await found(index, 'sultan')).toEqual(['chunk-2'])
        const { [`${prefix}-chunks-8-2`]: now } = await engine('GET', `${prefix}-chunks-8-2`)
        expect(now.mappings).toEqual(created.mappings)
      }, 120_000)
    }
  })
})
