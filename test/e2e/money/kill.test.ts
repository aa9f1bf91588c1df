import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import {
  balancedWallet,
  base64,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000
/** Each round has something that was acknowledged within this, however busy the machine. */
const BEGUN_MS = 60_000

/** More than two workers finish until the kill, and few enough that all are finished soon after the last one. */
const UPLOADS_A_ROUND = 8
/** Of the mock's embeddings. */
const TOKENS_A_TEXT = 10

/** The service on one data folder, killed without warning as often as wanted. */
describe('kill -9', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-kill-'))
  let mock: MockEngine
  let service: Service
  let operatorKey: string
  const restart = async () => {
    service = await startEmbedded({ folder, catalog: mockCatalog(mock.url) })
    operatorKey ??= service.key
  }
  const kill = () => service.processes.get('all')!.end('SIGKILL')
  const as = (key: string) => createCaller(service, key)
  beforeAll(async () => {
    mock = await startMockEngine()
    await restart()
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  it(`${full(30)} times during ingestion: every acknowledged document is ready once, nothing is duplicated, embeddings are paid once`, async () => {
    const { key } = await newOrganization(as(operatorKey), service)
    // Each batch takes 300 ms, so that kills hit every stage; each text is 10 tokens, so that what was paid can be
    // counted.
    const collection = await newCollection(as(key), 'mock-embed-slow')
    const acknowledged = new Map<string, string>()
    let next = 0
    const upload = async (caller: Caller): Promise<void> => {
      const name = `document-${next++}`
      const paragraphs = Array.from(
        { length: 6 },
        (_, i) => `# Part ${i} of ${name}\n\n${`${name} part ${i} speaks of matter ${i * 7 + next}. `.repeat(25)}`,
      )
      const file = await caller.rest('POST', '/v1/files', { file_name: `${name}.md`, content_base64: base64(paragraphs.join('\n\n')) })
      const document = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.body.message.id })
      if (document.status === 201) acknowledged.set(document.body.id, name)
    }
    for (let round = 0; round < full(30); round++) {
      const work = (async () => {
        for (let i = 0; i < UPLOADS_A_ROUND; i++) await upload(as(key))
      })().catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1_200))
      await eventually(() => acknowledged.size > round, BEGUN_MS)
      await kill()
      await work
      await restart()
      // Time to get on: an ingestion that is killed at every single start would rightly be poison in the end.
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    const caller = as(key)
    expect(acknowledged.size).toBeGreaterThanOrEqual(full(30))
    let chunks = 0
    for (const [id] of acknowledged) {
      const document = await settled(caller, collection.id, id, 300_000)
      expect(document).toMatchObject({ status: 'ready', error: null })
      chunks += document.chunk_count
    }
    const documents: Json[] = []
    for (let cursor = ''; ; ) {
      const { body } = await caller.rest('GET', `/v1/collections/${collection.id}/documents?limit=100${cursor && `&after=${cursor}`}`)
      documents.push(...body.data)
      if (!body.has_more) break
      cursor = body.last_id
    }
    // A document whose answer was lost may be there too; it is complete like the others.
    for (const { id } of documents.filter((document) => !acknowledged.has(document.id)))
      chunks += (await settled(caller, collection.id, id)).chunk_count
    expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).body.chunk_count).toBe(chunks)
    expect((await caller.rest('GET', '/v1/organization')).body.quota.vectors.used).toBe(chunks)

    const [id, name] = [...acknowledged][0]!
    const { body: hits } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, {
      query: `${name} part 3`,
      limit: 50,
      mode: 'lexical',
      filter: { document_id: id },
    })
    const ids = hits.data.map((hit: Json) => hit.chunk_id)
    expect(new Set(ids).size).toBe(ids.length)
    const spans = hits.data.map((hit: Json) => [hit.char_start, hit.char_end]).sort((a: number[], b: number[]) => a[0]! - b[0]!)
    for (let i = 1; i < spans.length; i++) expect(spans[i][0]).toBeGreaterThanOrEqual(spans[i - 1][1])

    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
    await balancedWallet(caller)
    const paid = (await embeddingTokens(caller)) / TOKENS_A_TEXT
    expect(paid).toBeLessThanOrEqual(chunks)
    // A kill between a batch's answer and its record leaves that batch to the service, for each document under way.
    expect(paid).toBeGreaterThanOrEqual(chunks - full(30) * 2 * 16)
  }, 600_000)

  it(`${full(30)} times during chats: no acknowledged write is lost, and the ledger balances`, async () => {
    const { key } = await newOrganization(as(operatorKey), service)
    let okCount = 0
    for (let round = 0; round < full(30); round++) {
      const caller = as(key)
      let stop = false
      const work = Array.from({ length: 10 }, async (_, i) => {
        while (!stop) {
          const words = ['hi', 'please be slow', 'please hang'][i % 3]!
          const stream = i % 3 === 2
          const response = await caller
            .rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: words }], stream })
            .catch(() => undefined)
          if (response?.status === 200 && !stream) okCount++
          if (!response) return
        }
      })
      await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 800))
      await eventually(() => okCount > round, BEGUN_MS)
      await kill()
      stop = true
      await Promise.all(work)
      await restart()
    }
    const caller = as(key)
    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
    const { balance_usd } = await balancedWallet(caller)
    const records = await usage(caller)
    const spent = records.reduce((sum, record) => sum + nano(record.amount_usd), 0n)
    expect(nano(balance_usd)).toBe(nano('10') - spent)
    // Each answer that a client has seen was charged before.
    expect(records.filter((record) => record.source === 'provider').length).toBeGreaterThanOrEqual(okCount)
    expect(okCount).toBeGreaterThan(0)
    const estimated = records.filter((record) => record.source === 'estimated')
    expect(estimated.every((record) => record.input_tokens > 0)).toBe(true)
  }, 600_000)
})

async function usage(caller: Caller): Promise<Json[]> {
  const records: Json[] = []
  for (let after = ''; ; ) {
    const { body } = await caller.rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
    records.push(...body.data)
    if (!body.has_more) return records
    after = body.last_id
  }
}

async function embeddingTokens(caller: Caller): Promise<number> {
  return (await usage(caller)).filter((record) => record.operation === 'embedding').reduce((sum, record) => sum + record.input_tokens, 0)
}
