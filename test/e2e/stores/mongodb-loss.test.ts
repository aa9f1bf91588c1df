import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testCatalog } from '../../support/catalog.ts'
import {
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  newCollection,
  newOrganization,
  type RestResponse,
} from '../../support/client.ts'
import { onEngine } from '../../support/engines/engine-url.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { dropServiceDatabases, newDatabaseName, withDatabase } from '../../support/engines/mongodb.ts'
import { MongoProxy } from '../../support/engines/mongodb-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

/** As an outage is; a tenth of it in CI. */
const DOWN_MS = full(60) * 1_000
/** Acknowledged, of each kind, before the outage and again after it. */
const WRITES = 20

/** A probe that asks for this long has its answer: the stores are given 2 s to answer a ping. */
const READINESS_MS = 5_000

await onEngine('KIS_TEST_MONGODB_URL', 'Loss of MongoDB', (url) => {
  describe('Loss of MongoDB', () => {
    const database = newDatabaseName()
    let mock: MockEngine
    let proxy: MongoProxy
    let service: Service
    let operator: Caller
    let caller: Caller & { readonly organizationId: string }
    beforeAll(async () => {
      mock = await startMockEngine()
      proxy = await MongoProxy.start(url)
      const env = { KIS_MONGODB_URL: withDatabase(proxy.through(url), database) }
      service = await startEmbedded({ catalog: testCatalog(mock.url), env })
      operator = createCaller(service, service.key)
      caller = await newOrganization(operator, service)
    }, 60_000)
    afterAll(async () => {
      await service?.close()
      await proxy?.[Symbol.asyncDispose]()
      await mock?.[Symbol.asyncDispose]()
      await dropServiceDatabases(url, database)
    })

    const readiness = async () => {
      const response = await fetch(`${service.rest}/readyz`, { signal: AbortSignal.timeout(READINESS_MS) })
      return { status: response.status, body: await response.json() }
    }
    const chat = () =>
      caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'Good morning' }] })

    it('refuses calls that need it with a retry delay, calls no engine, and recovers without a restart', async () => {
      const collection = await newCollection(caller)
      expect((await chat()).status).toBe(200)
      const before = mock.requests.length
      expect(await readiness()).toMatchObject({ status: 200 })

      await proxy.stop()
      await eventually(async () => (await readiness()).status === 503)
      expect(await readiness()).toMatchObject({ body: { problems: expect.arrayContaining(['document store']) } })
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
      expect(mock.requests).toHaveLength(before)
      expect((await fetch(`${service.rest}/healthz`)).status).toBe(200)

      await proxy.resume()
      await eventually(async () => (await readiness()).status === 200, 90_000)
      expect((await caller.rest('GET', `/v1/collections/${collection.id}`)).body).toEqual(collection)
      expect((await chat()).status).toBe(200)
      await balancedWallet(caller)
    }, 180_000)

    it('preserves every acknowledged write over a long outage, and calls no engine without a hold', async () => {
      const seen = { chat: new Set<string>(), file: new Set<string>(), topUp: new Set<string>() }
      const refusals = new Set<string>()
      let isOver = false
      /** Asks on and on; `take` gets what was acknowledged. */
      const sendContinuously = async (send: (n: number) => Promise<RestResponse>, onAccepted: (body: Json) => void) => {
        for (let n = 0; !isOver; n++) {
          const { status, body, headers } = await send(n)
          if (status < 300) onAccepted(body)
          else refusals.add(`${status} ${body.error?.code}, again: ${headers.has('retry-after')}`)
          await new Promise((resolve) => setTimeout(resolve, 10))
        }
      }
      const topUps = `/v1/organizations/${caller.organizationId}/top-ups`
      const load = Promise.all([
        sendContinuously(chat, () => seen.chat.add(`${seen.chat.size}`)),
        sendContinuously(
          (n) => caller.rest('POST', '/v1/files', { file_name: `${n}.txt`, content_base64: Buffer.from(`text ${n}`).toString('base64') }),
          ({ message }) => seen.file.add(message.id),
        ),
        sendContinuously(
          (n) => operator.rest('POST', topUps, { amount_usd: '0.01', reference: `outage ${n}` }),
          ({ reference }) => seen.topUp.add(reference),
        ),
      ])
      const acknowledged = async (count: number) => {
        const wanted = Object.values(seen).map((ids) => ids.size + count)
        await eventually(() => Object.values(seen).every((ids, i) => ids.size >= wanted[i]!), 60_000)
      }
      try {
        await acknowledged(WRITES)

        await proxy.stop()
        const stoppedAt = performance.now()
        await eventually(async () => (await readiness()).status === 503, READINESS_MS)
        expect(performance.now() - stoppedAt).toBeLessThan(READINESS_MS)
        const calls = mock.chats
        await new Promise((resolve) => setTimeout(resolve, DOWN_MS - (performance.now() - stoppedAt)))
        expect(mock.chats).toBe(calls)
        expect((await fetch(`${service.rest}/healthz`)).status).toBe(200)
        expect(service.processes.get('all')!.hasEnded).toBe(false)

        await proxy.resume()
        await eventually(async () => (await readiness()).status === 200, 90_000)
        await acknowledged(WRITES)
      } finally {
        isOver = true
        await load
      }
      expect([...refusals]).toEqual(['503 service_unavailable, again: true'])
      const files = new Set((await listAll('/v1/files')).map(({ id }) => id))
      expect([...seen.file].filter((id) => !files.has(id))).toEqual([])
      // What was cut off by the outage is resolved by then: a hold that nobody renews runs out after 45 s.
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', 90_000)
      await balancedWallet(caller)
      const references = new Set((await listAll('/v1/wallet/entries')).map(({ reference }) => reference))
      expect([...seen.topUp].filter((reference) => !references.has(reference))).toEqual([])
      const charged = (await listAll('/v1/usage')).filter(({ operation }) => operation === 'chat_completion')
      expect(charged).toHaveLength(mock.chats)
    }, 360_000)

    async function listAll(path: string): Promise<Json[]> {
      const all: Json[] = []
      for (let after = ''; ; ) {
        const { body } = await caller.rest('GET', `${path}?limit=100${after && `&after=${after}`}`)
        all.push(...body.data)
        if (!body.has_more) return all
        after = body.last_id
      }
    }
  })
})
