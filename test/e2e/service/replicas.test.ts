import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WebSourceRecord } from '../../../subgraphs/knowledge/domain/records.ts'
import { mockCatalog } from '../../support/catalog.ts'
import {
  addDocument,
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
import { Site } from '../../support/engines/site.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { onBothEngines, type Replicas } from '../../support/processes/replicas.ts'
import { soaking } from '../../support/soak.ts'

/** A revoked key is dead everywhere within this: the service's own promise. */
const REVOKED_MS = 5_000
/** Of the mock's embeddings. */
const TOKENS_A_TEXT = 10
const KILL_EVERY_MS = soaking ? 10_000 : 4_000
/** Documents that workers read while they are killed: 10 s of work or more, so both are killed in it. */
const DOCUMENTS = soaking ? 2_000 : 40
/** An open hold of a process that is gone is resolved by billing within this. */
const HOLDS_END_MS = 75_000

await onBothEngines('Two replicas of each role', (start) => {
  describe('Two replicas of each role', () => {
    let mock: MockEngine
    let site: Site
    let receiver: WebhookReceiver
    let service: Replicas
    let operator: Caller
    beforeAll(async () => {
      mock = await startMockEngine()
      site = await Site.start()
      receiver = await WebhookReceiver.start()
      const replicas = { billing: 2, knowledge: 2, inference: 2, gateway: 2, 'rest-adapter': 2 }
      const env = { KIS_DRAIN_MS: '10000', KIS_EGRESS_ALLOW: `${site.host},${receiver.host}` }
      service = await start({ catalog: mockCatalog(mock.url), replicas, env })
      operator = createCaller(service, service.key)
    }, 180_000)
    afterAll(async () => {
      await service?.close()
      await mock?.[Symbol.asyncDispose]()
      await site?.[Symbol.asyncDispose]()
      await receiver?.[Symbol.asyncDispose]()
    }, 120_000)

    it('followers at every replica see every change of a document, from any replica', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller, 'mock-embed')
      // More sockets than replicas, so that each replica has some.
      const clients = Array.from({ length: 6 }, () => caller.socket())
      const query = 'subscription { documentUpdated { cursor documentId document { status stage } } }'
      const followed = clients.map((client) => client.iterate<Json>({ query }))
      const documents = 5
      // Nothing says when a subscription has begun, so documents are added until each follower has heard of one.
      const probes = new Set<string>()
      let following = 0
      const reading = followed.map(async (events) => {
        const seen: Json[] = []
        const added = () => seen.filter(({ documentId }) => !probes.has(documentId))
        for await (const { data, errors } of events) {
          expect(errors).toBeUndefined()
          if (seen.push(data.documentUpdated) === 1) following++
          if (added().filter(({ document }) => document?.status === 'READY').length === documents) break
        }
        return added()
      })
      while (following < clients.length) {
        const name = `probe-${probes.size}.txt`
        const file = await caller.rest('POST', '/v1/files', { file_name: name, content_base64: base64(`A text of ${name}.`) })
        const probe = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.body.message.id })
        probes.add(probe.body.id)
        await settled(caller, collection.id, probe.body.id)
      }
      await Promise.all(
        Array.from({ length: documents }, (_, i) => addDocument(caller, collection.id, `${i}.txt`, `A text about matter ${i}.`)),
      )
      const [first, ...others] = await Promise.all(reading)
      expect(first!.map(({ cursor }) => Number(cursor))).toEqual(first!.map((_, i) => Number(first![0].cursor) + i))
      for (const seen of others) expect(seen).toEqual(first)
      await Promise.all(clients.map((client) => client.dispose()))
    }, 60_000)

    it('a run of an agent is followed and cancelled at any replica, whichever runs it', async () => {
      const caller = await newOrganization(operator, service)
      const agent = (await caller.rest('POST', '/v1/agents', { code: 'slow', name: 'Slow', model: 'mock-chat' })).body
      const cut = new AbortController()
      const opened = await fetch(`${service.rests[0]}/v1/agents/${agent.id}/runs`, {
        method: 'POST',
        headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ input: 'hang', stream: true }),
        signal: cut.signal,
      })
      const { value } = await opened.body!.pipeThrough(new TextDecoderStream()).getReader().read()
      cut.abort()
      const runId = /run_[0-9a-f]+/.exec(value!)![0]
      // More followers than replicas, so that each replica has some.
      const followers = Array.from({ length: 6 }, async (_, i) => {
        const response = await fetch(`${service.rests[i % 2]}/v1/runs/${runId}/events`, {
          headers: { authorization: `Bearer ${caller.key}` },
        })
        return response.text()
      })
      const cancelled = await createCaller({ ...service, rest: service.rests[1]! }, caller.key).rest('POST', `/v1/runs/${runId}/cancel`)
      expect(cancelled.status).toBe(200)
      const [first, ...others] = await Promise.all(followers)
      expect(first).toMatch(/event: run_started[\s\S]*event: done\ndata: .*"status":"cancelled"/)
      // The first event shows the run as it is when it is read.
      const readEvents = (text: string) => text.replace(/^(data: \{"type":"run_started".*?),"run":.*$/m, '$1')
      for (const other of others) expect(readEvents(other)).toBe(readEvents(first!))
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', 30_000)
      const run = (await caller.rest('GET', `/v1/runs/${runId}`)).body
      const records = (await caller.rest('GET', '/v1/usage')).body.data.filter(({ request_id }: Json) => request_id === runId)
      expect(nano(run.cost_usd)).toBe(records.reduce((sum: bigint, { amount_usd }: Json) => sum + nano(amount_usd), 0n))
      await balancedWallet(caller)
    }, 60_000)

    it('a streamed chat whose socket was lost is followed at any replica, and is unknown to others', async () => {
      const caller = await newOrganization(operator, service)
      const otherTenant = await newOrganization(operator, service)
      const proxy = await TcpProxy.start(service.graphql)
      const client = createCaller({ ...service, graphql: `${proxy.url}/graphql` }, caller.key).socket()
      const query = 'subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) { id textDelta } }'
      const input = { request: { model: 'mock-chat', messages: [{ role: 'user', content: 'hang' }] } }
      const { chats, abandoned } = mock
      let id = ''
      const lost = (async () => {
        for await (const { data } of client.iterate<Json>({ query, variables: { input } }))
          if (data.chatCompletion.textDelta !== '') id = data.chatCompletion.id
      })().catch((error) => error)
      await eventually(() => id !== '')
      await proxy[Symbol.asyncDispose]()
      await lost
      const follow = (by: Caller, i: number, signal?: AbortSignal) =>
        fetch(`${service.rests[i % 2]}/v1/chat/completions/${id}/events`, {
          headers: { authorization: `Bearer ${by.key}` },
          ...(signal && { signal }),
        })
      const controller = new AbortController()
      // More followers than replicas, so that each replica has some.
      const followers = await Promise.all(Array.from({ length: 6 }, (_, i) => follow(caller, i, controller.signal)))
      for (const { body } of followers) {
        let text = ''
        const pieces = body!.pipeThrough(new TextDecoderStream()).getReader()
        while (!text.includes('Hello')) text += (await pieces.read()).value
      }
      expect((await follow(otherTenant, 0)).status).toBe(404)
      expect([mock.chats - chats, mock.abandoned - abandoned]).toEqual([1, 0])
      controller.abort()
      const events = 'subscription ($id: ID!) { chatCompletionEvents(id: $id) { textDelta } }'
      const end = async () => {
        for await (const { data } of caller.socket().iterate<Json>({ query: events, variables: { id } }))
          if (data?.chatCompletionEvents.textDelta === 'Hello') break
      }
      await eventually(async () => {
        await end()
        return mock.abandoned - abandoned === 1
      })
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0')
      expect((await caller.rest('GET', '/v1/usage')).body.data).toHaveLength(1)
      await balancedWallet(caller)
    }, 120_000)

    it('repeats of a streamed chat with an idempotency key join it from any replica', async () => {
      const caller = await newOrganization(operator, service)
      const { chats } = mock
      const body = JSON.stringify({ model: 'mock-chat', messages: [{ role: 'user', content: 'gate' }], stream: true })
      const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', 'idempotency-key': 'one' }
      const send = async (i: number) => {
        const response = await fetch(`${service.rests[i % 2]}/v1/chat/completions`, { method: 'POST', headers, body })
        return [...(await response.text()).matchAll(/"content":"([^"]*)"/g)].map(([, text]) => text).join('')
      }
      const first = send(0)
      await eventually(() => mock.chats === chats + 1)
      const repeated = Array.from({ length: 6 }, (_, i) => send(i))
      mock.openGate()
      expect(new Set(await Promise.all([first, ...repeated]))).toEqual(new Set(['Hello from the mock مرحبا']))
      expect(mock.chats - chats).toBe(1)
      await eventually(async () => (await caller.rest('GET', '/v1/usage')).body.data.length === 1)
      await balancedWallet(caller)
    }, 60_000)

    it('replicas of inference share the limits of a key', async () => {
      const admin = await newOrganization(operator, service)
      const createSender = async (requests_per_minute: number) => {
        const { key } = (await admin.rest('POST', '/v1/keys', { name: 'limited', requests_per_minute })).body
        const callers = service.rests.map((rest) => createCaller({ ...service, rest }, key))
        return (i: number) =>
          callers[i % callers.length]!.rest('POST', '/v1/chat/completions', {
            model: 'mock-chat',
            messages: [{ role: 'user', content: 'Hi' }],
          })
      }
      // One call after the other, wherever it goes: what is left is what the key has left at all.
      const one = await createSender(6)
      for (let i = 0; i < 6; i++) {
        const { status, headers } = await one(i)
        expect(status).toBe(200)
        expect([headers.get('x-ratelimit-limit-requests'), headers.get('x-ratelimit-remaining-requests')]).toEqual(['6', String(5 - i)])
      }
      const { status, headers } = await one(0)
      expect([status, headers.get('x-ratelimit-remaining-requests')]).toEqual([429, '0'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      // Many at once at all replicas. What drains during the calls is admitted, too.
      for (const limit of [10, 300]) {
        const send = await createSender(limit)
        const [begun, statuses] = [Date.now(), [] as number[]]
        let next = 0
        const sendUntilRefused = async () => {
          while (next < limit * 1.5) statuses.push((await send(next++)).status)
        }
        await Promise.all(Array.from({ length: 16 }, sendUntilRefused))
        const drained = (limit * (Date.now() - begun)) / 60_000
        const admitted = statuses.filter((status) => status === 200).length
        expect(admitted).toBeGreaterThanOrEqual(Math.floor(limit * 0.95))
        expect(admitted).toBeLessThanOrEqual(Math.ceil(limit * 1.05 + drained))
        expect(statuses.filter((status) => status === 429)).toHaveLength(statuses.length - admitted)
      }
    }, 120_000)

    it('a key that one replica revokes is refused by all within 5 s', async () => {
      const admin = await newOrganization(operator, service)
      const { body: key } = await admin.rest('POST', '/v1/keys', { name: 'short-lived', scopes: ['inference'] })
      const status = async (rest: string) => (await createCaller({ ...service, rest }, key.key).rest('GET', '/v1/models')).status
      for (let i = 0; i < 4; i++) for (const rest of service.rests) expect(await status(rest)).toBe(200)
      expect((await admin.rest('DELETE', `/v1/keys/${key.id}`)).status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, REVOKED_MS))
      for (let i = 0; i < 4; i++) for (const rest of service.rests) expect(await status(rest)).toBe(401)
    }, 30_000)

    it('a due URL is fetched once, with its validators, and by the other replica when one dies', async () => {
      const caller = await newOrganization(operator, service)
      const collection = await newCollection(caller, 'mock-embed')
      const text = (year: number) => `The harbour of Qasr was rebuilt in ${year}.`
      site.pages.set('/news', { body: text(1931), type: 'text/plain', etag: '"1"' })
      const path = `/v1/collections/${collection.id}`
      const added = await caller.rest('POST', `${path}/documents`, { url: site.at('/news'), refresh_seconds: 86_400 })
      expect(added.status).toBe(201)
      await settled(caller, collection.id, added.body.id)
      await using client = new MongoClient(service.mongodbUrl)
      const { dbName } = client.options
      const sources = client
        .db(`${dbName}_knowledge`)
        .collection<Pick<WebSourceRecord, '_id' | 'checkedAt' | 'formerFileId' | 'dueAt'>>('web_sources')
      const [source] = (await caller.rest('GET', `${path}/sources`)).body.data
      const isDueNow = () => sources.updateOne({ _id: source.id }, { $set: { dueAt: new Date() } })
      const etags = () => site.requests.filter((one) => one.path === '/news').map(({ headers }) => headers['if-none-match'])
      const checkedAt = async () => (await sources.findOne({ _id: source.id }))!.checkedAt!.getTime()
      /** Makes the address due, and gives what was asked of it until a worker has been there. */
      const refresh = async () => {
        const [before, seen] = [await checkedAt(), etags().length]
        await isDueNow()
        await eventually(async () => (await checkedAt()) > before, 30_000)
        return etags().slice(seen)
      }
      expect(await refresh()).toEqual(['"1"'])
      expect(await refresh()).toEqual(['"1"'])
      site.pages.set('/news', { body: text(2024), type: 'text/plain', etag: '"2"', hangs: true })
      const [before, seen] = [await checkedAt(), etags().length]
      await isDueNow()
      await eventually(() => etags().length > seen, 30_000)
      // They start again later: a worker waits 15 s for the page, and a start may take as long.
      const killed: string[] = []
      for (const name of ['knowledge-1', 'knowledge-2']) {
        if (site.left > 0) break
        killed.push(name)
        await service.processes.get(name)!.end('SIGKILL')
        await eventually(() => site.left > 0, 1_000).catch(() => undefined)
      }
      expect(site.left).toBe(1)
      for (const name of killed) await service.restart(name)
      site.pages.set('/news', { body: text(2024), type: 'text/plain', etag: '"2"' })
      // The lease of the dead one is over.
      await isDueNow()
      await eventually(async () => (await checkedAt()) > before, 30_000)
      expect(etags().slice(seen)).toEqual(['"1"', '"1"'])
      const document = async () => (await caller.rest('GET', `${path}/documents/${added.body.id}`)).body
      await eventually(async () => (await document()).version === 2, 30_000)
      // Whoever deletes the file before is not asked to fetch, and may still have the lease.
      await eventually(async () => (await sources.findOne({ _id: source.id }))!.formerFileId === null, 30_000)
      expect((await caller.rest('GET', '/v1/files')).body.data).toHaveLength(1)
      expect(await refresh()).toEqual(['"2"'])
      await balancedWallet(caller)
    }, 120_000)

    it('no request fails while every process behind the REST adapter is restarted, half of them at a time', async () => {
      const caller = await newOrganization(operator, service)
      const receiverEndpoint = receiver.at('/used')
      const endpoint = await caller.rest('POST', '/v1/webhooks', { url: receiverEndpoint.url, event_types: ['usage.recorded'] })
      receiverEndpoint.secret = endpoint.body.secret
      const collection = await newCollection(caller, 'mock-embed')
      await addDocument(caller, collection.id, 'rivers.txt', 'The longest river of Oman is a wadi.')
      const failures: unknown[] = []
      const done = { chats: 0, streams: 0, searches: 0, uploads: 0 }
      let isOver = false
      const ok = (response: { status: number; body: Json }) => {
        if (response.status >= 300) throw new Error(JSON.stringify(response.body))
        return response.body
      }
      const messages = [{ role: 'user' as const, content: 'please be slow' }]
      const uploaded: string[] = []
      const kinds: Record<keyof typeof done, () => Promise<unknown>> = {
        chats: () => caller.openai.chat.completions.create({ model: 'mock-chat', messages }),
        async streams() {
          let text = ''
          for await (const chunk of await caller.openai.chat.completions.create({ model: 'mock-chat', messages, stream: true }))
            text += chunk.choices[0]?.delta.content ?? ''
          if (text !== 'Hello from the mock مرحبا') throw new Error(`cut: ${text}`)
        },
        async searches() {
          const hits = ok(await caller.rest('POST', `/v1/collections/${collection.id}/search`, { query: 'river' }))
          if (hits.data.length === 0) throw new Error('no hit')
        },
        async uploads() {
          const name = `${done.uploads}-${Math.random()}.txt`
          const file = ok(await caller.rest('POST', '/v1/files', { file_name: name, content_base64: base64(`A text in ${name}.`) }))
          const document = ok(await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id: file.message.id }))
          uploaded.push(document.id)
        },
      }
      const work = Object.entries(kinds).flatMap(([kind, run]) =>
        [1, 2].map(async () => {
          while (!isOver) {
            await run().then(
              () => done[kind as keyof typeof done]++,
              (error) => failures.push([kind, String(error)]),
            )
            // The processes share this machine with those that start.
            await new Promise((resolve) => setTimeout(resolve, 100))
          }
        }),
      )
      const restarted = [...service.processes.keys()].filter((name) => !name.startsWith('rest-adapter'))
      expect(restarted).toHaveLength(8)
      for (const number of ['1', '2']) {
        const half = restarted.filter((name) => name.endsWith(number))
        expect(await Promise.all(half.map((name) => service.restart(name)))).toEqual(half.map(() => 0))
      }
      isOver = true
      await Promise.all(work)
      expect(failures).toEqual([])
      for (const count of Object.values(done)) expect(count).toBeGreaterThan(5)
      await eventually(() => receiverEndpoint.accepted.length > 5, 30_000)
      expect(receiverEndpoint.faults).toEqual([])
      for (const id of uploaded) expect(await settled(caller, collection.id, id)).toMatchObject({ status: 'ready' })
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
      await balancedWallet(caller)
    }, 300_000)

    it(`${DOCUMENTS} documents through two workers of which one is killed every few seconds: each ready once, no orphan, embeddings paid once`, async () => {
      const caller = await newOrganization(operator, service, { creditUsd: '100' })
      const collection = await newCollection(caller, 'mock-embed-slow')
      const ids: string[] = []
      let isUploaded = false
      const uploading = (async () => {
        let next = 0
        await Promise.all(
          Array.from({ length: 4 }, async () => {
            while (next < DOCUMENTS) {
              const name = `document-${next++}`
              const text = Array.from(
                { length: 3 },
                (_, i) => `# Part ${i} of ${name}\n\n${`${name} speaks of matter ${i}. `.repeat(25)}`,
              ).join('\n\n')
              // A worker is being killed meanwhile: what it was asked for and did not answer is asked again.
              const retried = async (path: string, body: unknown): Promise<Json> => {
                for (let attempt = 0; ; attempt++) {
                  const response = await caller.rest('POST', path, body)
                  if (response.status < 300) return response.body
                  if (response.status !== 503 || attempt > 20) throw new Error(JSON.stringify(response.body))
                  await new Promise((resolve) => setTimeout(resolve, 250))
                }
              }
              const file = await retried('/v1/files', { file_name: `${name}.md`, content_base64: base64(text) })
              ids.push((await retried(`/v1/collections/${collection.id}/documents`, { file_id: file.message.id })).id)
            }
          }),
        )
        isUploaded = true
      })()
      const counts = async () =>
        (
          await caller.graphql(
            'query ($id: ID!) { collection(id: $id) { ready: documents(status: READY, first: 1) { edges { node { id } } } documentCount chunkCount } }',
            { id: collection.id },
          )
        ).data?.collection
      let kills = 0
      const isDone = async () => {
        if (!isUploaded) return false
        const { data } = await caller.graphql(
          'query ($id: ID!) { collection(id: $id) { queued: documents(status: QUEUED, first: 1) { edges { node { id } } } processing: documents(status: PROCESSING, first: 1) { edges { node { id } } } } }',
          {
            id: collection.id,
          },
        )
        return data?.collection.queued.edges.length === 0 && data.collection.processing.edges.length === 0
      }
      while (kills < 2 || !(await isDone())) {
        await new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS))
        await service.restart(`knowledge-${(kills++ % 2) + 1}`, 'SIGKILL')
      }
      await uploading
      const { chunkCount, documentCount } = await counts()
      // A file whose upload was repeated is attached once; its first copy has no document.
      expect(documentCount).toBe(new Set(ids).size)
      let chunks = 0
      for (const id of new Set(ids)) {
        const document = await settled(caller, collection.id, id)
        expect(document).toMatchObject({ status: 'ready', error: null })
        chunks += document.chunk_count
      }
      expect(chunkCount).toBe(chunks)
      expect((await caller.rest('GET', '/v1/organization')).body.quota.vectors.used).toBe(chunks)
      expect(await differences(operator, collection.id)).toEqual([])
      await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0', HOLDS_END_MS)
      await balancedWallet(caller)
      const paid = (await embeddingTokens(caller)) / TOKENS_A_TEXT
      expect(paid).toBeLessThanOrEqual(chunks)
      // A kill between a batch's answer and its record leaves that batch to the service, for each of the two documents
      // under way.
      expect(paid).toBeGreaterThanOrEqual(chunks - kills * 2 * 16)
    }, 3_000_000)
  })
})

/** What index and store do not agree on. */
async function differences(operator: Caller, collectionId: string): Promise<Json[]> {
  const found: Json[] = []
  for (let after: string | null = null; ; ) {
    const { data, errors } = await operator.graphql(
      'mutation ($input: VerifyIndexInput!) { verifyIndex(input: $input) { next findings { kind documentId generation expected found } } }',
      { input: { collectionId, after } },
    )
    if (errors) throw new Error(JSON.stringify(errors))
    found.push(...data.verifyIndex.findings)
    if (!data.verifyIndex.next) return found
    after = data.verifyIndex.next
  }
}

async function embeddingTokens(caller: Caller): Promise<number> {
  let tokens = 0
  for (let after = ''; ; ) {
    const { body } = await caller.rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
    for (const record of body.data) if (record.operation === 'embedding') tokens += record.input_tokens
    if (!body.has_more) return tokens
    after = body.last_id
  }
}
