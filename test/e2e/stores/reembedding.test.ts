import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, balancedWallet, type Caller, type Json, makeCaller, newCollection, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { paragraphs } from '../../support/knowledge.ts'
import { kis } from '../../support/processes/cli.ts'
import { onBothEngines } from '../../support/processes/replicas.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const DOCUMENTS = 3
const PARAGRAPHS = 16
/** Of the mock's embeddings. */
const TOKENS_A_TEXT = 10
const TIMEOUT_MS = 300_000
/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000
/** Its batches wait until the mock's gate opens. */
const GATED = '  - { id: mock-embed-gate, engine: mock, kind: embedding, dimensions: 8, context_window: 8192, price: { input: "1" } }\n'

interface Killable {
  readonly service: () => Service
  /** Kills every process that works on re-embeddings, one after the other, and starts it again. */
  readonly kill: () => Promise<unknown>
  readonly close: () => Promise<void>
}

function reembeddingUnderKills(name: string, start: (catalog: string) => Promise<Killable>): void {
  describe(`another embedding model for a collection, ${name}`, () => {
    let mock: MockEngine
    let killable: Killable
    let key: string
    let operatorKey: string
    let collection: Json
    const caller = (): Caller => makeCaller(killable.service(), key)
    beforeAll(async () => {
      mock = await startMockEngine()
      killable = await start(mockCatalog(mock.url).replace('plans:\n', `${GATED}plans:\n`))
      operatorKey = killable.service().key
      key = (await newOrganization(makeCaller(killable.service(), operatorKey), killable.service())).key
      collection = await newCollection(caller(), 'mock-embed')
      for (let i = 0; i < DOCUMENTS; i++) await addDocument(caller(), collection.id, `${i}.txt`, paragraphs(PARAGRAPHS, `matter${i}n`))
    }, TIMEOUT_MS)
    afterAll(async () => {
      await killable?.close()
      await mock?.[Symbol.asyncDispose]()
    })

    const ask = async (method: string, path: string, body?: unknown): Promise<Json> => {
      const answer = await caller().rest(method, path, body)
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
      return answer.body
    }
    const path = () => `/v1/collections/${collection.id}`
    const read = (id: string) => ask('GET', `/v1/reembeddings/${id}`)
    /** For some moments after a kill, a read may be refused with 503. */
    const readAfterKill = async (id: string): Promise<Json> => {
      const { status, body } = await caller().rest('GET', `/v1/reembeddings/${id}`)
      if (status !== 503) expect(status, JSON.stringify(body)).toBe(200)
      return status === 200 ? body : null
    }
    const begin = async (embedding_model: string): Promise<string> => (await ask('POST', `${path()}/reembeddings`, { embedding_model })).id
    const gotOn = (id: string, passages: number) =>
      eventually(async () => {
        const found = await readAfterKill(id)
        return found !== null && (found.progress.done >= passages || found.status === 'completed')
      }, 90_000)
    const find = async (document: string, mode: string): Promise<string[]> => {
      const { data } = await ask('POST', `${path()}/search`, { query: `${document}0x1`, limit: 50, mode })
      return data.map((hit: Json) => hit.file.file_name)
    }

    it('outlives kills: each passage is paid once, and every search finds what it found', { timeout: TIMEOUT_MS }, async () => {
      const quote = await ask('POST', `${path()}/reembeddings/quote`, { embedding_model: 'mock-embed-wide' })
      const { chunk_count: passages } = await ask('GET', path())
      expect(quote).toMatchObject({ passages, residency: 'cloud', dimensions: 16, is_exact: true, is_covered: true })
      expect((await ask('GET', '/v1/wallet')).held_usd).toBe('0')
      const id = await begin('mock-embed-wide')
      let isOver = false
      const searching = (async () => {
        for (let i = 0; !isOver; i++) {
          const document = i % (DOCUMENTS - 1)
          // A search whose process is killed gets no answer.
          const found = await find(`matter${document}n`, 'lexical').catch(() => null)
          if (found) expect(found.filter((file) => file === `${document}.txt`).length).toBeGreaterThan(0)
        }
      })()
      await gotOn(id, 16)
      await killable.kill()
      await gotOn(id, 64)
      const late = await addDocument(caller(), collection.id, 'late.txt', paragraphs(1, 'late'))
      const [last] = (await ask('GET', `${path()}/documents?limit=2`)).data.filter((document: Json) => document.id !== late.id)
      await ask('DELETE', `${path()}/documents/${last.id}`)
      await killable.kill()
      await eventually(async () => (await readAfterKill(id))?.status === 'completed', 120_000)
      isOver = true
      await searching

      const ended = await read(id)
      expect(ended).toMatchObject({ stage: null, error: null, former_model: 'mock-embed', embedding_model: 'mock-embed-wide' })
      expect(await ask('GET', path())).toMatchObject({ embedding_model: 'mock-embed-wide', dimensions: 16, document_count: DOCUMENTS })
      expect(ended.tokens).toBe(TOKENS_A_TEXT * ended.progress.total)
      const usage = (await ask('GET', '/v1/usage?limit=100')).data.filter(({ model }: Json) => model === 'mock-embed-wide')
      const tokens = usage.reduce((sum: number, { input_tokens }: Json) => sum + input_tokens, 0)
      // The late document is embedded by itself with the new model if it comes after the swap.
      expect([0, TOKENS_A_TEXT * late.chunk_count]).toContain(tokens - ended.tokens)
      expect(ended.cost_usd).toBe(String(ended.tokens / 1_000_000))
      await eventually(async () => (await ask('GET', '/v1/wallet')).held_usd === '0', HOLDS_END_MS)
      await balancedWallet(caller())
      expect(await find('late', 'lexical')).toContain('late.txt')
      expect(await find('matter0n', 'hybrid')).toHaveLength(50)
      expect((await kis(killable.service(), operatorKey, 'verify')).code).toBe(0)
    })

    it('is cancelled: nothing of it stays, and nothing is held', { timeout: TIMEOUT_MS }, async () => {
      const { embeddings } = mock
      const id = await begin('mock-embed-gate')
      await eventually(() => mock.embeddings > embeddings, 60_000)
      // The batch that waits goes on, and the next one waits: nothing ends before it is cancelled.
      mock.openGate()
      mock.closeGate()
      await gotOn(id, 16)
      await ask('POST', `/v1/reembeddings/${id}/cancel`)
      mock.openGate()
      await eventually(async () => (await read(id)).status === 'cancelled', 60_000)
      expect(await ask('GET', path())).toMatchObject({ embedding_model: 'mock-embed-wide', dimensions: 16 })
      expect((await ask('GET', '/v1/wallet')).held_usd).toBe('0')
      await balancedWallet(caller())
      expect((await kis(killable.service(), operatorKey, 'verify')).code).toBe(0)
    })
  })
}

reembeddingUnderKills('one process on its own files', async (catalog) => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-reembed-'))
  let service = await startEmbedded({ folder, catalog })
  return {
    service: () => service,
    async kill() {
      await service.processes.get('all')!.end('SIGKILL')
      service = await startEmbedded({ folder, catalog })
    },
    async close() {
      await service.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
})

await onBothEngines('two replicas of knowledge', (start) => {
  reembeddingUnderKills('two replicas of knowledge on MongoDB and Elasticsearch', async (catalog) => {
    const service = await start({ catalog, replicas: { knowledge: 2 } })
    return {
      service: () => service,
      async kill() {
        for (const name of ['knowledge-1', 'knowledge-2']) await service.restart(name, 'SIGKILL')
      },
      close: () => service.close(),
    }
  })
})
