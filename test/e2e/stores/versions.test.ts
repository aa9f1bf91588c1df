import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import {
  addDocument,
  balancedWallet,
  base64,
  type Caller,
  type Json,
  makeCaller,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { soaking } from '../../support/soak.ts'

/** Each batch of embeddings takes 300 ms, so that kills and searches come in the middle. */
const SLOW = 'mock-embed-slow'
const KILLS = soaking ? 4 : 2
/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000

interface Running {
  readonly service: Service
  kill(): Promise<void>
  close(): Promise<void>
}

function versions(name: string, start: (mock: MockEngine) => Promise<Running>): void {
  describe(`documents and their versions, ${name}`, () => {
    let mock: MockEngine
    let running: Running
    let key: string
    const caller = (): Caller => makeCaller(running.service, key)
    beforeAll(async () => {
      mock = await startMockEngine()
      running = await start(mock)
      key = (await newOrganization(makeCaller(running.service, running.service.key), running.service)).key
    }, 120_000)
    afterAll(async () => {
      await running?.close()
      await mock?.[Symbol.asyncDispose]()
    })

    const upload = async (fileName: string, text: string): Promise<string> => {
      const { status, body } = await caller().rest('POST', '/v1/files', { file_name: fileName, content_base64: base64(text) })
      expect(status).toBe(201)
      return body.message.id
    }
    const attach = async (collection: string, fileName: string, text: string, more: object = {}) =>
      caller().rest('POST', `/v1/collections/${collection}/documents`, { file_id: await upload(fileName, text), ...more })
    const find = async (collection: string, query: string, filter?: object): Promise<readonly Json[]> => {
      const asked = { query, mode: 'lexical', limit: 50, ...(filter && { filter }) }
      const { status, body } = await caller().rest('POST', `/v1/collections/${collection}/search`, asked)
      if (status !== 200) throw new Error(JSON.stringify(body))
      return body.data
    }

    it('show what was read, take a new name at once, and are handled many at a time', async () => {
      const { id: collection } = await newCollection(caller(), 'mock-embed')
      const text = Array.from({ length: 9 }, (_, i) => `# بند ${i}\n\n${`The harbour of hall ${i} pays dues. `.repeat(60)}`).join('\n\n')
      const document = await addDocument(caller(), collection, 'dues.md', text, { year: 2025 })
      const at = `/v1/collections/${collection}/documents/${document.id}`
      const whole = (await caller().rest('GET', `${at}/text`)).body
      expect(whole).toMatchObject({ object: 'document_text', char_start: 0, next_offset: null, pages: [] })
      let joined = ''
      for (let offset: string | null = '0'; offset !== null; ) {
        const part = await caller().rest('GET', `${at}/text?format=text&length=1000&offset=${offset}`)
        expect(part.headers.get('content-type')).toBe('text/plain; charset=utf-8')
        joined += part.body
        offset = part.headers.get('x-next-offset')
      }
      expect(joined).toBe(whole.text)
      expect((await caller().rest('GET', `${at}/text?page_start=1`)).body.error).toMatchObject({
        code: 'invalid_request',
        param: 'page_start',
      })
      const first = (await caller().rest('GET', `${at}/chunks?limit=2`)).body
      const rest = (await caller().rest('GET', `${at}/chunks?limit=100&after=${first.last_id}`)).body
      const chunks: Json[] = [...first.data, ...rest.data]
      expect(chunks).toHaveLength(document.chunk_count)
      for (const chunk of chunks) expect(whole.text.slice(chunk.char_start, chunk.char_end)).toBe(chunk.text)
      const { data } = await caller().graphql(
        'query ($id: ID!) { document(id: $id) { name text(length: 10) { text nextOffset } chunks(first: 1) { edges { node { id } } } } }',
        { id: document.id },
      )
      expect(data.document).toMatchObject({ name: 'dues.md', text: { text: whole.text.slice(0, 10), nextOffset: 10 } })
      expect(data.document.chunks.edges[0].node.id).toBe(chunks[0].id)

      const { embeddings } = mock
      const patched = await caller().rest('PATCH', at, { file_name: 'dues-2026.md', metadata: { year: 2026 } })
      expect(patched.body).toMatchObject({ file_name: 'dues-2026.md', metadata: { year: 2026 } })
      expect(new Set((await find(collection, 'harbour', { 'metadata.year': 2026 })).map((hit) => hit.file.file_name))).toEqual(
        new Set(['dues-2026.md']),
      )
      expect(await find(collection, 'harbour', { file_name: 'dues.md' })).toEqual([])
      expect(mock.embeddings).toBe(embeddings)
      expect((await caller().rest('PATCH', at, { file_name: 'a/b' })).body.error).toMatchObject({
        code: 'invalid_request',
        param: 'file_name',
      })

      const files = [
        await upload('a.txt', 'one harbour'),
        await upload('b.txt', 'two harbours'),
        'file_none',
        await upload('c.txt', 'one harbour'),
      ]
      const many = await caller().rest('POST', `/v1/collections/${collection}/documents/attach`, {
        documents: files.map((file_id) => ({ file_id })),
      })
      expect(many.body.data.map((one: Json) => one.outcome ?? one.error.code)).toEqual(['created', 'created', 'not_found', 'unchanged'])
      const ids = [many.body.data[0].document.id, many.body.data[1].document.id]
      for (const id of ids) await settled(caller(), collection, id)
      const counts = (await caller().rest('GET', `/v1/collections/${collection}`)).body.document_counts
      expect(counts).toEqual({ queued: 0, processing: 0, ready: 3, failed: 0 })
      const retried = await caller().rest('POST', `/v1/collections/${collection}/documents/retry`, { document_ids: ids })
      expect(retried.body.data.map((one: Json) => one.document.status)).toEqual(['ready', 'ready'])
      const deleted = await caller().rest('POST', `/v1/collections/${collection}/documents/delete`, { document_ids: [...ids, 'doc_none'] })
      expect(deleted.body.data.map((one: Json) => [one.deleted, one.error?.code ?? null])).toEqual([
        [true, null],
        [true, null],
        [false, 'not_found'],
      ])
    }, 60_000)

    it('are replaced in one step, while searches run and the service is killed, and are paid once', async () => {
      const { id: collection } = await newCollection(caller(), SLOW)
      const body = (version: number) =>
        Array.from({ length: 24 }, (_, i) => `# Part ${i}\n\nVersion${version} of the harbour dues. ${`word${i} `.repeat(120)}`).join(
          '\n\n',
        )
      const document = await addDocument(caller(), collection, 'dues.md', body(1))
      const usedBefore = (await caller().rest('GET', '/v1/organization')).body.quota.vectors.used
      const seen: string[] = []
      let isOver = false
      const searching = (async () => {
        while (!isOver) {
          const hits = await find(collection, 'harbour dues').catch(() => null)
          // The service is being restarted.
          if (hits === null) await new Promise((resolve) => setTimeout(resolve, 20))
          else seen.push([...new Set(hits.map((hit) => /Version\d/.exec(hit.text)![0]))].sort().join())
        }
      })()
      await eventually(() => seen.length > 0)
      const answer = await attach(collection, 'dues.md', body(2), { on_conflict: 'replace' })
      expect([answer.status, answer.body.outcome, answer.body.id, answer.body.status]).toEqual([200, 'replacing', document.id, 'ready'])
      for (let kill = 0; kill < KILLS; kill++) {
        await new Promise((resolve) => setTimeout(resolve, 150 + kill * 150))
        await running.kill()
      }
      const at = `/v1/collections/${collection}/documents/${document.id}`
      let now: Json
      await eventually(async () => {
        now = (await caller().rest('GET', at)).body
        return now.version === 2 && now.replacement === null && seen.at(-1) === 'Version2'
      }, 90_000)
      isOver = true
      await searching
      expect(new Set(seen)).toEqual(new Set(['Version1', 'Version2']))
      expect(seen.lastIndexOf('Version1')).toBeLessThan(seen.indexOf('Version2'))
      expect(now).toMatchObject({ status: 'ready', chunk_count: document.chunk_count })
      const usedAfter = async () => (await caller().rest('GET', '/v1/organization')).body.quota.vectors.used
      await eventually(async () => (await usedAfter()) === usedBefore, 30_000)
      const { data: former } = (await caller().rest('GET', `${at}/versions`)).body
      expect(former).toMatchObject([{ version: 1, file_name: 'dues.md', file_id: document.file_id }])
      // The file is detached after the vectors are counted.
      await eventually(async () => (await caller().rest('DELETE', `/v1/files/${document.file_id}`)).status === 200, 30_000)
      expect((await caller().rest('GET', `${at}/versions`)).body.data[0].file_id).toBeNull()
      // A worker that was killed before it noted its hold leaves it to billing.
      await eventually(async () => (await caller().rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
      await balancedWallet(caller())
    }, 300_000)

    it('are known by an external id, and by texts that are nearly the same', async () => {
      const { id: collection } = await newCollection(caller(), 'mock-embed')
      const text = Array.from({ length: 80 }, (_, i) => `البند ${i}: The tenant of hall ${i * 3} pays the dues of month ${i % 12}.`).join(
        '\n',
      )
      const first = await attach(collection, 'a.txt', text, { external_id: 'contract-7' })
      expect([first.status, first.body.external_id]).toEqual([201, 'contract-7'])
      await settled(caller(), collection, first.body.id)
      const taken = await attach(collection, 'b.txt', 'Another text.', { external_id: 'contract-7' })
      expect([taken.status, taken.body.error.code, taken.body.error.param]).toEqual([409, 'already_exists', 'external_id'])
      const near = await addDocument(caller(), collection, 'c.txt', text.replace('البند 3:', 'البند الثالث:'))
      const { data } = (await caller().rest('GET', `/v1/collections/${collection}/documents/${near.id}/similar`)).body
      expect(data).toHaveLength(1)
      expect(data[0]).toMatchObject({ object: 'similar_document', document: { id: first.body.id } })
      expect(data[0].similarity).toBeGreaterThan(0.85)
    }, 60_000)
  })
}

const folder = mkdtempSync(join(tmpdir(), 'kis-versions-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

versions('one process', async (mock) => {
  const start = () => startEmbedded({ folder, catalog: mockCatalog(mock.url) })
  let service = await start()
  const { key } = service
  return {
    get service() {
      return { ...service, key }
    },
    async kill() {
      await service.processes.get('all')!.end('SIGKILL')
      service = await start()
    },
    close: () => service.close(),
  }
})
await onBothEngines('documents and their versions', (start) =>
  versions('five processes', async (mock) => {
    const service = await start({ catalog: mockCatalog(mock.url), replicas: { knowledge: 2 } })
    let last = 0
    return {
      service,
      kill: async () => void (await service.restart(`knowledge-${1 + (last++ % 2)}`, 'SIGKILL')),
      close: () => service.close(),
    }
  }),
)
