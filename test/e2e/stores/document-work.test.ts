import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { paragraphs } from '../../support/knowledge.ts'
import { kis } from '../../support/processes/cli.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

const TIMEOUT_MS = 300_000
/** What stands on one service disturbs what comes after it. */
const ONE_BY_ONE = { concurrent: false, timeout: TIMEOUT_MS }
/** With each batch, the mock takes 300 ms for these, so that kills and searches come in the middle. */
const SLOW = 'mock-embed-slow'
const SLOW_WIDE = 'mock-embed-wide'
/** Its batches wait until the mock's gate opens. */
const GATED_MODEL = 'mock-embed-gate'
const GATED = `  - { id: ${GATED_MODEL}, engine: mock, kind: embedding, dimensions: 8, context_window: 8192, price: { input: "1" } }\n`
/** Of the mock's embeddings. */
const TOKENS_A_TEXT = 10
const KILLS = full(4)
/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000
/** More chunks together than a rebuild takes over in one step. */
const ANCHORS = 6
const PARAGRAPHS = 50
/** Between two things that are done over and over. */
const PAUSE_MS = 100

interface Running {
  readonly service: Service
  /** Kills every process that works on documents, and starts it again. */
  kill(): Promise<unknown>
  /** What runs while an index is rebuilt without load. It must not keep the rebuild from its end. */
  midway?(): Promise<unknown>
  close(): Promise<void>
}

/** A document's own word is nobody else's. */
const makeWord = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 16)

/** An organization of a service that may come back elsewhere after a kill. */
function tenantOf(running: () => Running, key: string) {
  const caller = (): Caller => createCaller(running().service, key)
  const ask = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const answer = await caller().rest(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path} gave ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  /** Null: a process has just been killed. */
  const askAfterKill = (path: string): Promise<Json> => ask('GET', path).catch(() => null)
  const upload = async (fileName: string, text: string): Promise<string> =>
    (await ask('POST', '/v1/files', { file_name: fileName, content_base64: base64(text) })).message.id
  return {
    caller,
    ask,
    askAfterKill,
    upload,
    attach: async (collection: string, fileName: string, text: string, more: object = {}) =>
      caller().rest('POST', `/v1/collections/${collection}/documents`, { file_id: await upload(fileName, text), ...more }),
    find: async (collection: string, query: string, filter?: object, mode = 'lexical'): Promise<readonly Json[]> =>
      (await ask('POST', `/v1/collections/${collection}/search`, { query, mode, limit: 50, ...(filter && { filter }) })).data,
  }
}
type Tenant = ReturnType<typeof tenantOf>

/** Does something over and over until `end`, which throws what was wrong. */
function over(again: () => Promise<unknown>) {
  let isOver = false
  const work = (async () => {
    while (!isOver) {
      await again()
      await sleep(PAUSE_MS)
    }
  })()
  work.catch(() => undefined)
  return {
    end: () => {
      isOver = true
      return work
    },
  }
}

/** A document that is replaced, while searches run. */
async function replacement(tenant: Tenant) {
  const { id: collection } = await newCollection(tenant.caller(), SLOW)
  const body = (version: number) =>
    Array.from({ length: 24 }, (_, i) => `# Part ${i}\n\nVersion${version} of the harbour dues. ${`word${i} `.repeat(120)}`).join('\n\n')
  const document = await addDocument(tenant.caller(), collection, 'dues.md', body(1))
  const used = async () => (await tenant.ask('GET', '/v1/organization')).quota.vectors.used
  const usedBefore = await used()
  const seen: string[] = []
  const searching = over(async () => {
    const hits = await tenant.find(collection, 'harbour dues').catch(() => null)
    // The service is being restarted.
    if (hits !== null) seen.push([...new Set(hits.map((hit) => /Version\d/.exec(hit.text)![0]))].sort().join())
  })
  await eventually(() => seen.length > 0)
  const at = `/v1/collections/${collection}/documents/${document.id}`
  return {
    async begin() {
      const answer = await tenant.attach(collection, 'dues.md', body(2), { on_conflict: 'replace' })
      expect([answer.status, answer.body.outcome, answer.body.id, answer.body.status]).toEqual([200, 'replacing', document.id, 'ready'])
    },
    async ended() {
      let now: Json
      await eventually(async () => {
        now = await tenant.askAfterKill(at)
        return now?.version === 2 && now.replacement === null && seen.at(-1) === 'Version2'
      }, 90_000)
      await searching.end()
      expect(new Set(seen)).toEqual(new Set(['Version1', 'Version2']))
      expect(seen.lastIndexOf('Version1')).toBeLessThan(seen.indexOf('Version2'))
      expect(now).toMatchObject({ status: 'ready', chunk_count: document.chunk_count })
      await eventually(async () => (await used()) === usedBefore, 30_000)
      const { data: former } = await tenant.ask('GET', `${at}/versions`)
      expect(former).toMatchObject([{ version: 1, file_name: 'dues.md', file_id: document.file_id }])
      // The file is detached after the vectors are counted.
      await eventually(async () => (await tenant.caller().rest('DELETE', `/v1/files/${document.file_id}`)).status === 200, 30_000)
      expect((await tenant.ask('GET', `${at}/versions`)).data[0].file_id).toBeNull()
    },
  }
}

/** A collection that another model embeds, while searches run, a document comes and one goes. */
async function reembedding(tenant: Tenant) {
  const DOCUMENTS = 3
  const collection = await newCollection(tenant.caller(), 'mock-embed')
  const add = (_: unknown, i: number) => addDocument(tenant.caller(), collection.id, `${i}.txt`, paragraphs(16, `matter${i}n`))
  const documents: Json[] = await Promise.all(Array.from({ length: DOCUMENTS }, add))
  const path = `/v1/collections/${collection.id}`
  const namesOf = (hits: readonly Json[]): string[] => hits.map((hit) => hit.file.file_name)
  let i = 0
  const searching = over(async () => {
    const document = i++ % (DOCUMENTS - 1)
    // A search whose process is killed gets no answer.
    const found = await tenant.find(collection.id, `matter${document}n0x1`).catch(() => null)
    if (found) expect(namesOf(found)).toContain(`${document}.txt`)
  })
  const quote = await tenant.ask('POST', `${path}/reembeddings/quote`, { embedding_model: SLOW_WIDE })
  const { chunk_count: passages } = await tenant.ask('GET', path)
  expect(quote).toMatchObject({ passages, residency: 'cloud', dimensions: 16, is_exact: true, is_covered: true })
  expect((await tenant.ask('GET', '/v1/wallet')).held_usd).toBe('0')
  let at: string
  let late: Json
  return {
    async begin() {
      const { id } = await tenant.ask('POST', `${path}/reembeddings`, { embedding_model: SLOW_WIDE })
      at = `/v1/reembeddings/${id}`
      await eventually(async () => (await tenant.ask('GET', at)).progress.done >= 16, 90_000)
      late = (await tenant.attach(collection.id, 'late.txt', paragraphs(1, 'late'))).body
      await tenant.ask('DELETE', `${path}/documents/${documents.at(-1).id}`)
      expect((await tenant.ask('GET', at)).status).not.toBe('completed')
    },
    async ended() {
      await eventually(async () => (await tenant.askAfterKill(at))?.status === 'completed', 120_000)
      await searching.end()
      late = await settled(tenant.caller(), collection.id, late.id)
      const ended = await tenant.ask('GET', at)
      expect(ended).toMatchObject({ stage: null, error: null, former_model: 'mock-embed', embedding_model: SLOW_WIDE })
      expect(await tenant.ask('GET', path)).toMatchObject({ embedding_model: SLOW_WIDE, dimensions: 16, document_count: DOCUMENTS })
      expect(ended.tokens).toBe(TOKENS_A_TEXT * ended.progress.total)
      expect(ended.cost_usd).toBe(String(ended.tokens / 1_000_000))
      expect(namesOf(await tenant.find(collection.id, 'late0x1'))).toContain('late.txt')
    },
    /** Once nothing is held any more. */
    async isPaidOnce() {
      const ended = await tenant.ask('GET', at)
      const usage = (await tenant.ask('GET', '/v1/usage?limit=100')).data.filter(({ model }: Json) => model === SLOW_WIDE)
      const tokens = usage.reduce((sum: number, { input_tokens }: Json) => sum + input_tokens, 0)
      // The late document is embedded by itself with the new model if it comes after the swap.
      expect([0, TOKENS_A_TEXT * late.chunk_count]).toContain(tokens - ended.tokens)
      expect(await tenant.find(collection.id, 'matter0n0x1', undefined, 'hybrid')).toHaveLength(50)
    },
  }
}

function documentWork(name: string, start: (catalog: string) => Promise<Running>, hasReplicas: boolean): void {
  describe.concurrent(`Ingestion and index under kills, ${name}`, () => {
    let mock: MockEngine
    let running: Running
    const tenants: Tenant[] = []
    const operator = () => createCaller(running.service, running.service.key)
    const newTenant = async () => {
      const { key } = await newOrganization(operator(), running.service, { creditUsd: '100' })
      const tenant = tenantOf(() => running, key)
      tenants.push(tenant)
      return tenant
    }
    const operate = (...args: string[]) => kis(running.service, running.service.key, ...args)
    beforeAll(async () => {
      mock = await startMockEngine()
      running = await start(mockCatalog(mock.url).replace('plans:\n', `${GATED}plans:\n`))
    }, TIMEOUT_MS)
    afterAll(async () => {
      await running?.close()
      await mock?.[Symbol.asyncDispose]()
    })

    it('shows read text, renames documents immediately, and handles many at a time', ONE_BY_ONE, async () => {
      const tenant = await newTenant()
      const { id: collection } = await newCollection(tenant.caller(), 'mock-embed')
      const text = Array.from({ length: 9 }, (_, i) => `# بند ${i}\n\n${`The harbour of hall ${i} pays dues. `.repeat(60)}`).join('\n\n')
      const document = await addDocument(tenant.caller(), collection, 'dues.md', text, { year: 2025 })
      const at = `/v1/collections/${collection}/documents/${document.id}`
      const whole = (await tenant.caller().rest('GET', `${at}/text`)).body
      expect(whole).toMatchObject({ object: 'document_text', char_start: 0, next_offset: null, pages: [] })
      let joined = ''
      for (let offset: string | null = '0'; offset !== null; ) {
        const part = await tenant.caller().rest('GET', `${at}/text?format=text&length=1000&offset=${offset}`)
        expect(part.headers.get('content-type')).toBe('text/plain; charset=utf-8')
        joined += part.body
        offset = part.headers.get('x-next-offset')
      }
      expect(joined).toBe(whole.text)
      expect((await tenant.caller().rest('GET', `${at}/text?page_start=1`)).body.error).toMatchObject({
        code: 'invalid_request',
        param: 'page_start',
      })
      const first = (await tenant.caller().rest('GET', `${at}/chunks?limit=2`)).body
      const rest = (await tenant.caller().rest('GET', `${at}/chunks?limit=100&after=${first.last_id}`)).body
      const chunks: Json[] = [...first.data, ...rest.data]
      expect(chunks).toHaveLength(document.chunk_count)
      for (const chunk of chunks) expect(whole.text.slice(chunk.char_start, chunk.char_end)).toBe(chunk.text)
      const { data } = await tenant
        .caller()
        .graphql(
          'query ($id: ID!) { document(id: $id) { name text(length: 10) { text nextOffset } chunks(first: 1) { edges { node { id } } } } }',
          { id: document.id },
        )
      expect(data.document).toMatchObject({ name: 'dues.md', text: { text: whole.text.slice(0, 10), nextOffset: 10 } })
      expect(data.document.chunks.edges[0].node.id).toBe(chunks[0].id)

      const { embeddings } = mock
      const patched = await tenant.caller().rest('PATCH', at, { file_name: 'dues-2026.md', metadata: { year: 2026 } })
      expect(patched.body).toMatchObject({ file_name: 'dues-2026.md', metadata: { year: 2026 } })
      expect(new Set((await tenant.find(collection, 'harbour', { 'metadata.year': 2026 })).map((hit) => hit.file.file_name))).toEqual(
        new Set(['dues-2026.md']),
      )
      expect(await tenant.find(collection, 'harbour', { file_name: 'dues.md' })).toEqual([])
      expect(mock.embeddings).toBe(embeddings)
      expect((await tenant.caller().rest('PATCH', at, { file_name: 'a/b' })).body.error).toMatchObject({
        code: 'invalid_request',
        param: 'file_name',
      })

      const files = [
        await tenant.upload('a.txt', 'one harbour'),
        await tenant.upload('b.txt', 'two harbours'),
        'file_none',
        await tenant.upload('c.txt', 'one harbour'),
      ]
      const many = await tenant.caller().rest('POST', `/v1/collections/${collection}/documents/attach`, {
        documents: files.map((file_id) => ({ file_id })),
      })
      expect(many.body.data.map((one: Json) => one.outcome ?? one.error.code)).toEqual(['created', 'created', 'not_found', 'unchanged'])
      const ids = [many.body.data[0].document.id, many.body.data[1].document.id]
      for (const id of ids) await settled(tenant.caller(), collection, id)
      const counts = (await tenant.caller().rest('GET', `/v1/collections/${collection}`)).body.document_counts
      expect(counts).toEqual({ queued: 0, processing: 0, ready: 3, failed: 0 })
      const retried = await tenant.caller().rest('POST', `/v1/collections/${collection}/documents/retry`, { document_ids: ids })
      expect(retried.body.data.map((one: Json) => one.document.status)).toEqual(['ready', 'ready'])
      const deleted = await tenant
        .caller()
        .rest('POST', `/v1/collections/${collection}/documents/delete`, { document_ids: [...ids, 'doc_none'] })
      expect(deleted.body.data.map((one: Json) => [one.deleted, one.error?.code ?? null])).toEqual([
        [true, null],
        [true, null],
        [false, 'not_found'],
      ])
    })

    let killed: { readonly anew: Awaited<ReturnType<typeof reembedding>>; readonly replaced: Awaited<ReturnType<typeof replacement>> }
    it('kills every process during a replacement, and during the re-embedding of a collection', ONE_BY_ONE, async () => {
      killed = { anew: await reembedding(await newTenant()), replaced: await replacement(await newTenant()) }
      await killed.anew.begin()
      await killed.replaced.begin()
      for (let kill = 0; kill < KILLS; kill++) {
        await sleep(150)
        await running.kill()
      }
    })

    // Meanwhile the leases of what was killed end.
    it('identifies documents by an external ID, and near-duplicates by their text', ONE_BY_ONE, async () => {
      const tenant = await newTenant()
      const { id: collection } = await newCollection(tenant.caller(), 'mock-embed')
      const text = Array.from({ length: 80 }, (_, i) => `البند ${i}: The tenant of hall ${i * 3} pays the dues of month ${i % 12}.`).join(
        '\n',
      )
      const first = await tenant.attach(collection, 'a.txt', text, { external_id: 'contract-7' })
      expect([first.status, first.body.external_id]).toEqual([201, 'contract-7'])
      await settled(tenant.caller(), collection, first.body.id)
      const taken = await tenant.attach(collection, 'b.txt', 'Another text.', { external_id: 'contract-7' })
      expect([taken.status, taken.body.error.code, taken.body.error.param]).toEqual([409, 'already_exists', 'external_id'])
      const near = await addDocument(tenant.caller(), collection, 'c.txt', text.replace('البند 3:', 'البند الثالث:'))
      const { data } = (await tenant.caller().rest('GET', `/v1/collections/${collection}/documents/${near.id}/similar`)).body
      expect(data).toHaveLength(1)
      expect(data[0]).toMatchObject({ object: 'similar_document', document: { id: first.body.id } })
      expect(data[0].similarity).toBeGreaterThan(0.85)
    })

    it('cancels a re-embedding, which leaves no data and no hold', ONE_BY_ONE, async () => {
      const tenant = await newTenant()
      const collection = await newCollection(tenant.caller(), SLOW_WIDE)
      await addDocument(tenant.caller(), collection.id, 'a.txt', paragraphs(16))
      const path = `/v1/collections/${collection.id}`
      const { id } = await tenant.ask('POST', `${path}/reembeddings`, { embedding_model: GATED_MODEL })
      await eventually(() => mock.requests.some(({ model }) => model === GATED_MODEL), 60_000)
      // The batch that waits goes on, and the next one waits: nothing ends before it is cancelled.
      mock.openGate()
      mock.closeGate()
      await eventually(async () => (await tenant.ask('GET', `/v1/reembeddings/${id}`)).progress.done >= 16, 60_000)
      await tenant.ask('POST', `/v1/reembeddings/${id}/cancel`)
      mock.openGate()
      await eventually(async () => (await tenant.ask('GET', `/v1/reembeddings/${id}`)).status === 'cancelled', 60_000)
      expect(await tenant.ask('GET', path)).toMatchObject({ embedding_model: SLOW_WIDE, dimensions: 16 })
      expect((await tenant.ask('GET', '/v1/wallet')).held_usd).toBe('0')
    })

    it('completes both after the kills, and every search finds what it should', ONE_BY_ONE, () =>
      Promise.all([killed.anew.ended(), killed.replaced.ended()]),
    )

    describe('kis reindex', { concurrent: false }, () => {
      let tenant: Tenant
      let collection: string
      /** The documents found by one's own word. */
      const found = async (document: string, mode?: string): Promise<string[]> =>
        (await tenant.find(collection, makeWord(document), undefined, mode)).map((hit) => hit.file.file_name)
      const add = async (document: string, count = 2): Promise<string> => {
        const text = `${makeWord(document)} stands here alone.\n\n${paragraphs(count, document)}`
        const added = await addDocument(tenant.caller(), collection, document, text)
        expect([added.status, added.error]).toEqual(['ready', null])
        return added.id
      }
      beforeAll(async () => {
        tenant = await newTenant()
        collection = (await newCollection(tenant.caller(), 'mock-embed')).id
      })

      it('fails no search or upload while it runs, and ends with nothing missing and nothing extra', ONE_BY_ONE, async () => {
        const anchors = Array.from({ length: ANCHORS }, (_, i) => `anchor${i}`)
        await Promise.all(anchors.map((anchor) => add(anchor, PARAGRAPHS)))
        const kept: string[] = []
        const deleted: string[] = []
        const counts = { searches: 0, uploads: 0 }
        const searching = over(async () => {
          const anchor = anchors[counts.searches++ % anchors.length]!
          expect(await found(anchor)).toContain(anchor)
          // The mock's vectors mean nothing, so only the number of hits is known.
          expect(await found(anchor, 'hybrid')).toHaveLength(50)
        })
        const uploading = over(async () => {
          const document = `late${counts.uploads++}`
          const id = await add(document)
          expect(await found(document)).toContain(document)
          if (counts.uploads % 3) kept.push(document)
          else {
            await tenant.ask('DELETE', `/v1/collections/${collection}/documents/${id}`)
            deleted.push(document)
          }
        })
        const { code, lines, errors } = await operate('reindex')
        await Promise.all([searching.end(), uploading.end()])
        expect([code, errors, lines.at(-1)]).toEqual([
          0,
          '',
          expect.stringContaining(': 0 missing, 0 incomplete, 0 extra, 0 being repaired'),
        ])
        expect(Number(lines[0]!.split(' ')[0])).toBeGreaterThan(ANCHORS * PARAGRAPHS)
        expect(counts.searches).toBeGreaterThan(5)
        for (const document of [...anchors, ...kept]) expect(await found(document)).toContain(document)
        for (const document of deleted) expect(await found(document)).not.toContain(document)
      })

      if (hasReplicas)
        it('completes after an interruption', ONE_BY_ONE, async () => {
          await add('another')
          const [{ code, errors }] = await Promise.all([operate('reindex', '--json'), running.midway!()])
          expect([code, errors]).toEqual([0, ''])
          expect(await found('another')).toContain('another')
        })
    })

    it('charges each chunk once, and leaves no hold and no missing chunk after kills', ONE_BY_ONE, async () => {
      // What a worker held that was killed before it noted it is left to billing.
      for (const { ask, caller } of tenants) {
        await eventually(async () => (await ask('GET', '/v1/wallet')).held_usd === '0', HOLDS_END_MS)
        await balancedWallet(caller())
      }
      await killed.anew.isPaidOnce()
      expect(await operate('verify')).toMatchObject({ code: 0, errors: '' })
    })
  })
}

const folder = mkdtempSync(join(tmpdir(), 'kis-work-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

documentWork(
  'one process on its own files',
  async (catalog) => {
    const start = () => startEmbedded({ folder, catalog })
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
  },
  false,
)
await onBothEngines('Ingestion and index under kills', (start) =>
  documentWork(
    'two replicas of knowledge on MongoDB and Elasticsearch',
    async (catalog) => {
      const service = await start({ catalog, replicas: { knowledge: 2 } })
      return {
        service,
        async kill() {
          for (const name of ['knowledge-1', 'knowledge-2']) await service.restart(name, 'SIGKILL')
        },
        midway: () => service.restart('knowledge-1', 'SIGKILL'),
        close: () => service.close(),
      }
    },
    true,
  ),
)
