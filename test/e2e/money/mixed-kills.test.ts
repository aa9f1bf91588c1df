import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, base64, createCaller, type Json, nano, newCollection, newOrganization, settled } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { kis } from '../../support/processes/cli.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

const KILLS = full(60)
const CREDIT_USD = '50'
/** What a killed process held is free again within this of the next start. */
const HOLDS_FREE_MS = 10_000
const TIMEOUT_MS = 60_000 + KILLS * 30_000

/** A call with an idempotency key, and how to repeat it. */
interface Keyed {
  readonly key: string
  readonly acknowledged: boolean
  readonly text: string | null
  repeat(): Promise<{ status: number; body: Json }>
}

/** The embedded service under work of all kinds, killed at moments that nobody chose. */
describe('kill -9 during mixed work', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-mixed-kills-'))
  let mock: MockEngine
  let service: Service
  let operatorKey: string
  const start = async () => {
    service = await startEmbedded({ folder, catalog: mockCatalog(mock.url) })
    operatorKey ||= service.key
  }
  beforeAll(async () => {
    mock = await startMockEngine()
    await start()
  }, 60_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  async function post(key: string, path: string, body: object, idempotencyKey: string): Promise<{ status: number; body: Json }> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': idempotencyKey }
    const response = await fetch(`${service.rest}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: await response.json() }
  }

  it(
    `${KILLS} times: nothing acknowledged is lost, nothing is paid twice, every repeat gets its response, and kis verify finds nothing`,
    async () => {
      const { key } = await newOrganization(createCaller(service, operatorKey), service, { creditUsd: CREDIT_USD })
      const as = () => createCaller(service, key)
      const collection = await newCollection(as(), 'mock-embed')
      const documents = new Map<string, string>()
      const keyed: Keyed[] = []
      let count = 0

      const chat = async (stop: AbortSignal) => {
        while (!stop.aborted) {
          const idempotencyKey = `chat-${count++}`
          const request = { model: 'mock-chat', messages: [{ role: 'user', content: `Good morning, ${idempotencyKey}!` }] }
          const send = () => post(key, '/v1/chat/completions', request, idempotencyKey)
          const response = await send().catch(() => null)
          const acknowledged = response?.status === 200
          keyed.push({
            key: idempotencyKey,
            acknowledged,
            text: acknowledged ? response.body.choices[0].message.content : null,
            repeat: send,
          })
        }
      }
      const embed = async (stop: AbortSignal) => {
        while (!stop.aborted) {
          const idempotencyKey = `embed-${count++}`
          const send = () => post(key, '/v1/embeddings', { model: 'mock-embed', input: `${idempotencyKey}!` }, idempotencyKey)
          const response = await send().catch(() => null)
          keyed.push({ key: idempotencyKey, acknowledged: response?.status === 200, text: null, repeat: send })
        }
      }
      const upload = async (stop: AbortSignal) => {
        while (!stop.aborted) {
          const word = `word${count++}`
          const content = base64(`The ${word} stands in the harbour.`)
          const file = await as()
            .rest('POST', '/v1/files', { file_name: `${word}.txt`, content_base64: content })
            .catch(() => null)
          if (file?.status !== 201) continue
          const document = await as()
            .rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.body.message.id })
            .catch(() => null)
          if (document?.status === 201) documents.set(document.body.id, word)
        }
      }
      const search = async (stop: AbortSignal) => {
        while (!stop.aborted)
          await as()
            .rest('POST', `/v1/collections/${collection.id}/search`, { query: 'harbour' })
            .catch(() => null)
      }

      for (let kill = 0; kill < KILLS; kill++) {
        const stop = new AbortController()
        const begun = keyed.length
        const work = [chat, chat, embed, upload, search].map((each) => each(stop.signal))
        await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 1_400))
        // A busy machine may not have answered an upload in any of the rounds.
        if (kill === KILLS - 1) await eventually(() => documents.size > 0, 30_000)
        await service.processes.get('all')!.end('SIGKILL')
        stop.abort()
        await Promise.all(work)
        await start()

        for (const { key: idempotencyKey, acknowledged, text, repeat } of keyed.slice(begun)) {
          // A repeat that comes while it is not yet known how the call has ended is told when to come back.
          let response: Json
          await eventually(async () => {
            response = await repeat()
            return response.status !== 409 && response.status !== 503
          }, HOLDS_FREE_MS)
          expect([idempotencyKey, response.status]).toEqual([idempotencyKey, 200])
          if (acknowledged && text !== null) expect(response.body.choices[0].message.content).toBe(text)
        }
        await eventually(async () => nano((await as().rest('GET', '/v1/wallet')).body.held_usd) === 0n || documents.size > 0, HOLDS_FREE_MS)
      }

      const caller = as()
      for (const [id, word] of documents) {
        expect(await settled(caller, collection.id, id)).toMatchObject({ status: 'ready', chunk_count: 1 })
        const { body } = await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: word, mode: 'lexical', limit: 1 })
        expect([word, body.data[0]?.document_id]).toEqual([word, id])
      }
      await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n, 60_000)

      // Each keyed call is one charge; so is each document, and each search that was answered or cut.
      const records: Json[] = []
      for (let after = ''; ; ) {
        const { body } = await caller.rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
        records.push(...body.data)
        if (!body.has_more) break
        after = body.last_id
      }
      const chats = keyed.filter(({ key }) => key.startsWith('chat-')).length
      expect(records.filter(({ model }) => model === 'mock-chat')).toHaveLength(chats)
      const { balance_usd } = await balancedWallet(caller)
      const paid = records.reduce((sum, { amount_usd }) => sum + nano(amount_usd), 0n)
      expect(nano(CREDIT_USD) - nano(balance_usd)).toBe(paid)

      const said = await kis(service, operatorKey, 'verify')
      expect([said.errors, said.lines.filter((line) => !/: | 0 missing/.test(line)), said.code]).toEqual(['', [], 0])
      expect([keyed.length > KILLS, documents.size > 0]).toEqual([true, true])
    },
    TIMEOUT_MS,
  )
})
