import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { addDocument, type Caller, createCaller, type Json, newCollection, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { type ReceiverEndpoint, WebhookReceiver } from '../../support/engines/webhook-receiver.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'
import { full } from '../../support/soak.ts'

/** Waits of webhooks are multiples of it: the first at most 5 ms, the tenth at most some minutes. */
const BACKOFF = { KIS_RETRY_BACKOFF_MS: '1' }

describe('Webhooks end to end', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-webhooks-'))
  let receiver: WebhookReceiver
  let mock: MockEngine
  let service: Service
  let operatorKey: string
  let endpointCount = 0
  let unanswered: Awaited<ReturnType<typeof startUnanswered>>
  const start = async () => {
    service = await startEmbedded({ folder, catalog: mockCatalog(mock.url), env: { ...BACKOFF, KIS_EGRESS_ALLOW: receiver.host } })
    operatorKey ??= service.key
  }
  beforeAll(async () => {
    receiver = await WebhookReceiver.start()
    mock = await startMockEngine()
    await start()
    unanswered = await startUnanswered()
  }, 90_000)
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
    await receiver?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const newTenant = () => newOrganization(createCaller(service, operatorKey), service)
  const createEndpoint = async (caller: Caller, event_types: readonly string[], answering?: ReceiverEndpoint['answering']) => {
    const endpoint = receiver.at(`/${endpointCount++}`)
    if (answering) endpoint.answering = answering
    const { status, body } = await caller.rest('POST', '/v1/webhooks', { url: endpoint.url, event_types })
    expect(status, JSON.stringify(body)).toBe(201)
    endpoint.secret = body.secret
    return { endpoint, id: body.id as string }
  }
  const call = (caller: Caller) =>
    caller.rest('POST', '/v1/chat/completions', { model: 'mock-chat', messages: [{ role: 'user', content: 'hi' }] })
  const deliveries = async (caller: Caller, id: string, query = '') =>
    (await caller.rest('GET', `/v1/webhooks/${id}/deliveries?limit=100${query}`)).body
  const ping = async (caller: Caller, id: string) => {
    const { status, body } = await caller.rest('POST', `/v1/webhooks/${id}/ping`)
    expect([status, body.object]).toEqual([200, 'webhook_delivery'])
    return body
  }

  it('report that an evaluated collection finds less than before', async () => {
    const caller = await newTenant()
    const { endpoint } = await createEndpoint(caller, ['evaluation.score_fell'])
    const collection = await newCollection(caller, 'mock-embed')
    const document = await addDocument(caller, collection.id, 'harbour.txt', 'The harbour of Sur was built in 1931.')
    const base = `/v1/collections/${collection.id}`
    const settings = [{ mode: 'lexical' }]
    const questions = [{ query: 'When was the harbour built?', expected: [{ file_name: 'harbour.txt' }] }]
    await caller.rest('POST', `${base}/gold-questions`, { questions })
    const baseline = await caller.rest('POST', `${base}/evaluations`, { settings })
    await eventually(async () => (await caller.rest('GET', `/v1/evaluations/${baseline.body.id}`)).body.status === 'completed', 30_000)
    const set = await caller.rest('POST', `${base}/evaluation-watch`, { settings, max_fall: 0.5 })
    expect(set).toMatchObject({
      status: 200,
      body: { object: 'evaluation_watch', min_interval_seconds: 86_400, max_fall: 0.5, error: null },
    })
    await caller.rest('DELETE', `${base}/documents/${document.id}`)
    await eventually(() => endpoint.accepted.length > 0, 60_000)

    expect(endpoint.faults).toEqual([])
    const [latest] = (await caller.rest('GET', `${base}/evaluations?limit=1`)).body.data
    expect(latest).toMatchObject({ changes: { deleted: 1 }, comparison: { baseline_evaluation_id: baseline.body.id, question_count: 1 } })
    expect(endpoint.accepted[0]).toMatchObject({
      type: 'evaluation.score_fell',
      data: { evaluation_id: latest.id, collection_id: collection.id, question_count: 1, falls: latest.comparison.falls },
    })
    expect((await caller.rest('GET', `${base}/evaluation-watch`)).body).toMatchObject({ changes: { deleted: 0 }, error: null })
    expect((await caller.rest('DELETE', `${base}/evaluation-watch`)).status).toBe(200)
    expect((await caller.rest('GET', `${base}/evaluation-watch`)).status).toBe(404)
  }, 120_000)

  it('preserve the order of each document and lose nothing at a receiver that fails at random', async () => {
    const caller = await newTenant()
    const failures = new Map<string, number>()
    const { endpoint, id } = await createEndpoint(caller, ['document.updated', 'document.deleted'], (message) => {
      const failed = failures.get(message.id) ?? 0
      // After a fifth failure the wait would be one of seconds, after a seventh one of minutes.
      if (failed === 4 || Math.random() >= 0.25) return 200
      failures.set(message.id, failed + 1)
      return 500
    })
    const collection = await newCollection(caller, 'mock-embed')
    const documents: Json[] = []
    for (let i = 0; i < full(60); i++) documents.push(await addDocument(caller, collection.id, `${i}.txt`, `A text about river ${i}.`))
    for (const document of documents) await caller.rest('DELETE', `/v1/collections/${collection.id}/documents/${document.id}`)
    const deletions = () => endpoint.accepted.filter(({ type }) => type === 'document.deleted')
    await eventually(() => new Set(deletions().map(({ data }) => data.document_id)).size === documents.length, 60_000)
    // The last of all events, as nothing of a document comes after its deletion.
    const last = String(Math.max(...deletions().map(({ data }) => Number(data.cursor))))
    const client = caller.socket()
    const all: { readonly cursor: string; readonly documentId: string }[] = []
    for await (const { data } of client.iterate<Json>({
      query: 'subscription { documentUpdated(after: "0") { cursor documentId document { id } } }',
    })) {
      all.push(data.documentUpdated)
      if (data.documentUpdated.cursor === last) break
    }
    await client.dispose()

    expect(endpoint.faults).toEqual([])
    expect(endpoint.accepted.map(({ data }) => data.cursor).toSorted((a, b) => a - b)).toEqual(all.map(({ cursor }) => cursor))
    for (const { id: documentId } of documents) {
      // Repeats of what was refused included: nothing overtakes.
      const cursors = endpoint.received.filter(({ data }) => data.document_id === documentId).map(({ data }) => Number(data.cursor))
      expect(cursors).toEqual(cursors.toSorted((a, b) => a - b))
      expect(endpoint.accepted.findLast(({ data }) => data.document_id === documentId)!.type).toBe('document.deleted')
    }
    const refused = endpoint.received.filter(({ status }) => status === 500)
    expect(refused.every(({ id }) => endpoint.accepted.some((message) => message.id === id))).toBe(true)
    const logged = (await deliveries(caller, id)).data.find((delivery: Json) => delivery.event.id === refused[0]?.id)
    if (logged)
      expect(logged.attempts[0]).toMatchObject({
        status_code: 500,
        error: 'The endpoint returned status 500.',
        response_start: 'answered 500',
      })
  })

  it('report money and calls to their own organization only', async () => {
    const [caller, otherTenant] = [await newTenant(), await newTenant()]
    await caller.rest('PATCH', '/v1/organization', { low_balance_threshold_usd: '9.99999' })
    const types = ['usage.recorded', 'wallet.changed', 'wallet.low_balance']
    const { endpoint } = await createEndpoint(caller, types)
    const { endpoint: elsewhere } = await createEndpoint(otherTenant, types)
    const { endpoint: other } = await createEndpoint(caller, ['document.updated'])
    for (let i = 0; i < 3; i++) expect((await call(caller)).status).toBe(200)
    await eventually(() => endpoint.accepted.filter(({ type }) => type === 'usage.recorded').length === 3)
    await eventually(() => endpoint.accepted.some(({ type }) => type === 'wallet.low_balance'))
    const { balance_usd } = (await caller.rest('GET', '/v1/wallet')).body
    await eventually(() => endpoint.accepted.some(({ type, data }) => type === 'wallet.changed' && data.balance_usd === balance_usd))
    const { data: records } = (await caller.rest('GET', '/v1/usage')).body
    expect(new Set(endpoint.accepted.flatMap(({ data }) => data.usage_record_id ?? []))).toEqual(new Set(records.map(({ id }: Json) => id)))
    expect([endpoint.faults, elsewhere.faults, other.received]).toEqual([[], [], []])
    // What the stranger may have heard of is its own credit.
    expect(elsewhere.received.every(({ type }) => type === 'wallet.changed')).toBe(true)
    expect(elsewhere.received.every(({ data }) => data.balance_usd === '10')).toBe(true)
  })

  /** Whose end the other tests need not wait for. */
  const startUnanswered = async () => {
    const caller = await newTenant()
    let attempts = 0
    const endpoint = await createEndpoint(caller, ['usage.recorded'], () => (++attempts === 1 ? 'silence' : 200))
    return { caller, ...endpoint, event: (await ping(caller, endpoint.id)).event }
  }

  it('are disabled by 410, are redelivered after reactivation, and once more on request', async () => {
    const caller = await newTenant()
    let status = 410
    const { endpoint, id } = await createEndpoint(caller, ['usage.recorded'], () => status)
    const { endpoint: witness } = await createEndpoint(caller, ['usage.recorded'])
    const since = Math.floor(Date.now() / 1_000) - 1
    await call(caller)
    const get = async () => (await caller.rest('GET', `/v1/webhooks/${id}`)).body
    await eventually(async () => (await get()).is_active === false)
    expect(await get()).toMatchObject({ disabled_reason: 'gone', disabled_at: expect.any(Number), failing_since: null })
    const refused = await caller.rest('POST', `/v1/webhooks/${id}/ping`)
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_request'])
    await call(caller)
    await eventually(() => witness.accepted.length === 2)
    status = 200
    const on = await caller.rest('PATCH', `/v1/webhooks/${id}`, { is_active: true })
    expect(on.body).toMatchObject({ is_active: true, disabled_reason: null, disabled_at: null })
    await eventually(() => endpoint.accepted.length === 1)
    expect(endpoint.accepted[0]!.id).toBe(endpoint.received[0]!.id)

    const [delivery] = (await deliveries(caller, id)).data
    const again = await caller.rest('POST', `/v1/webhooks/${id}/deliveries/${delivery.id}/redeliver`)
    expect(again.body).toMatchObject({ id: delivery.id, status: 'pending' })
    await eventually(() => endpoint.accepted.length === 2)
    expect(new Set(endpoint.accepted.map(({ id }) => id)).size).toBe(1)

    // The second call was made while it was off; all since then has both.
    const all = await caller.rest('POST', `/v1/webhooks/${id}/redeliver`, { since })
    expect(all.body).toEqual({ object: 'webhook_redelivery', count: 2, next: null })
    await eventually(() => endpoint.accepted.length === 4)
    expect(new Set(endpoint.accepted.map(({ data }) => data.usage_record_id)).size).toBe(2)
    await eventually(async () => (await deliveries(caller, id, '&status=delivered')).data.length === 2)
    const page = (await caller.rest('GET', `/v1/webhooks/${id}/deliveries?limit=1`)).body
    expect(page).toMatchObject({ has_more: true })
    expect((await deliveries(caller, id, `&after=${page.last_id}`)).data).toHaveLength(1)
  })

  it('are signed by the new and the former secret for a day after a rotation', async () => {
    const caller = await newTenant()
    const { endpoint, id } = await createEndpoint(caller, ['usage.recorded'])
    const former = endpoint.secret
    const { body } = await caller.rest('POST', `/v1/webhooks/${id}/rotate`)
    expect(body.secret).toMatch(/^whsec_/)
    expect(body.secret).not.toBe(former)
    expect(body.previous_secret_until).toBeGreaterThan(Date.now() / 1_000 + 86_000)
    // A ping while one is being sent is that one.
    const isSent = async (count: number) =>
      endpoint.accepted.length === count && (await deliveries(caller, id)).data.every(({ status }: Json) => status === 'delivered')
    await ping(caller, id)
    await eventually(() => isSent(1))
    endpoint.secret = body.secret
    await ping(caller, id)
    await eventually(() => isSent(2))
    endpoint.secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
    await ping(caller, id)
    await eventually(() => endpoint.faults.length > 0)
    expect(String(endpoint.faults[0])).toContain('No matching signature')
    expect(new Webhook(body.secret)).toBeDefined()
  })

  it('follow no redirect', async () => {
    const caller = await newTenant()
    const elsewhere = receiver.at('/elsewhere')
    let attempts = 0
    const { endpoint, id } = await createEndpoint(caller, ['usage.recorded'], () => (++attempts === 1 ? 307 : 200))
    endpoint.location = elsewhere.url
    await ping(caller, id)
    await eventually(() => endpoint.accepted.length === 1)
    expect(endpoint.received.map(({ status }) => status)).toEqual([307, 200])
    expect([elsewhere.received, elsewhere.faults]).toEqual([[], []])
  })

  it.each([
    ['https://127.0.0.1/hook', 'unsupported_value', 'url'],
    ['https://169.254.169.254/latest', 'unsupported_value', 'url'],
    ['https://[::1]/hook', 'unsupported_value', 'url'],
    ['https://10.0.0.8/hook', 'unsupported_value', 'url'],
    ['https://partner.test:8443/hook', 'unsupported_value', 'url'],
    ['http://partner.test/hook', 'unsupported_value', 'url'],
    ['https://LOCALHOST./hook', 'unsupported_value', 'url'],
    ['https://metadata.google.internal/hook', 'unsupported_value', 'url'],
    ['https://unknown.invalid/hook', 'unsupported_value', 'url'],
    ['not an address', 'unsupported_value', 'url'],
  ])('are refused for %s', async (url, code, param) => {
    const caller = createCaller(service, operatorKey)
    const { status, body } = await caller.rest('POST', '/v1/webhooks', { url, event_types: ['usage.recorded'] })
    expect({ status, code: body.error.code, param: body.error.param }).toEqual({ status: 400, code, param })
  })

  it('are for admins of their organization only', async () => {
    const [caller, otherTenant] = [await newTenant(), await newTenant()]
    const { id } = await createEndpoint(caller, ['usage.recorded'])
    const url = `http://${receiver.host}/x`
    const wrong = await caller.rest('POST', '/v1/webhooks', { url, event_types: ['usage.recorded', 'nothing.such'] })
    expect(wrong.body.error).toMatchObject({ code: 'unsupported_value', param: 'event_types[1]' })
    const { body: key } = await caller.rest('POST', '/v1/keys', { name: 'app', scopes: ['billing:read'] })
    expect((await createCaller(service, key.key).rest('GET', '/v1/webhooks')).body.error.code).toBe('permission_denied')
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { is_active: false }],
      ['DELETE', ''],
      ['POST', '/rotate'],
      ['POST', '/ping'],
      ['GET', '/deliveries'],
      ['POST', '/redeliver', { since: 0 }],
      ['POST', '/deliveries/whd_0/redeliver'],
    ] as const) {
      const response = await otherTenant.rest(method, `/v1/webhooks/${id}${path}`, body)
      expect([response.status, response.body.error.code], `${method} ${path}`).toEqual([404, 'not_found'])
    }
    expect((await otherTenant.rest('GET', '/v1/webhooks')).body.data).toEqual([])
    expect((await caller.rest('GET', '/v1/webhooks')).body.data).toMatchObject([{ id, is_active: true }])
    expect((await caller.rest('DELETE', `/v1/webhooks/${id}`)).body).toEqual({ id, object: 'webhook', deleted: true })
    expect((await caller.rest('GET', `/v1/webhooks/${id}`)).status).toBe(404)
    await caller.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })
    const outside = await caller.rest('POST', '/v1/webhooks', { url: 'https://partner.test/hook', event_types: ['usage.recorded'] })
    expect([outside.status, outside.body.error.code]).toEqual([403, 'residency_policy_violation'])
  })

  it(`reach a partner that is cut ${full(100)} times during ${full(10_000)} events once each, in order, by cursor`, async () => {
    const caller = await newTenant()
    const events = full(10_000)
    const seen: { readonly cursor: string; readonly id: string }[] = []
    const cuts = new Set<number>()
    while (cuts.size < full(100)) cuts.add(1 + Math.floor(Math.random() * (events - 1)))
    const follow = async () => {
      for (let after = '0'; seen.length < events; ) {
        const client = caller.socket()
        const query = `subscription { usageRecorded(after: "${after}") { cursor record { id } } }`
        try {
          for await (const { data, errors } of client.iterate<Json>({ query })) {
            expect(errors).toBeUndefined()
            const { cursor, record } = data.usageRecorded
            seen.push({ cursor, id: record.id })
            after = cursor
            if (seen.length === events) break
            // As a network is cut: no closing handshake, and what is on the way is lost.
            if (cuts.delete(seen.length)) client.terminate()
          }
        } catch (error) {
          if (!String((error as { code?: unknown }).code ?? error).match(/4499|terminated/i)) throw error
        }
        await client.dispose()
      }
    }
    const following = follow()
    let created = 0
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (created < events) {
          created++
          expect((await call(caller)).status).toBe(200)
        }
      }),
    )
    await following
    expect(cuts.size).toBe(0)
    const order = seen.map(({ cursor }) => Number(cursor))
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(new Set(seen.map(({ id }) => id)).size).toBe(events)
  }, 600_000)

  it('are redelivered without a response', async () => {
    const { caller, endpoint, id, event } = unanswered
    await eventually(() => endpoint.accepted.length === 1, 25_000)
    expect([endpoint.unanswered, endpoint.accepted[0]!.id]).toEqual([[event.id], event.id])
    await eventually(async () => (await deliveries(caller, id, '&status=delivered')).data.length === 1)
    const [{ attempts }] = (await deliveries(caller, id)).data
    expect(attempts).toMatchObject([
      { status_code: null, error: 'The endpoint did not respond within 10 s, or could not be reached.', response_start: null },
      { status_code: 200, error: null, response_start: 'answered 200' },
    ])
  })

  it(`survive kill -9 ${full(10)} times midway: each event arrives at least once, with one ID`, async () => {
    const { key } = await newTenant()
    const as = () => createCaller(service, key)
    const { endpoint } = await createEndpoint(as(), ['usage.recorded', 'wallet.changed'], async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 30))
      return 200
    })
    for (let round = 0; round < full(10); round++) {
      const acceptedCount = endpoint.accepted.length
      const work = Promise.all(
        Array.from({ length: 4 }, async () => {
          for (let i = 0; i < 10; i++) await call(as())
        }),
      ).catch(() => undefined)
      await eventually(() => endpoint.accepted.length > acceptedCount + 5)
      await service.processes.get('all')!.end('SIGKILL')
      await work
      await start()
    }
    expect((await call(as())).status).toBe(200)
    const records: string[] = []
    for (let after = ''; ; ) {
      const { body } = await as().rest('GET', `/v1/usage?limit=100${after && `&after=${after}`}`)
      records.push(...body.data.map(({ id }: Json) => id))
      if (!body.has_more) break
      after = body.last_id
    }
    const usage = () => endpoint.accepted.filter(({ type }) => type === 'usage.recorded')
    await eventually(() => records.every((id) => usage().some(({ data }) => data.usage_record_id === id)), 20_000)
    expect(endpoint.faults).toEqual([])
    const ids = new Map<string, string>()
    for (const { id, data } of usage()) {
      expect(ids.get(data.usage_record_id) ?? id).toBe(id)
      ids.set(data.usage_record_id, id)
    }
    const balances = endpoint.received.filter(({ type }) => type === 'wallet.changed').map(({ data }) => Number(data.cursor))
    expect(balances).toEqual(balances.toSorted((a, b) => a - b))
  }, 300_000)
})
