import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/**
 * USD per million tokens; the mock reports 20 tokens in, 4 of them cached, and 5 out. Above 10 tokens in all prices are
 * double.
 */
const createCatalog = (url: string) => `
engines:
  mock: { kind: openai, base_url: "${url}", badge: regional }
models:
  - { id: plain, engine: mock, kind: chat, max_output_tokens: 100, price: { input: "1", output: "1" } }
  - id: tiered
    engine: mock
    kind: chat
    max_output_tokens: 100
    price: { input: "1", cached_input: "0.5", output: "1", tiers: [{ above_input_tokens: 10, input: "2", cached_input: "1", output: "2" }] }
`

describe('Billing over REST', () => {
  let mock: MockEngine
  let service: Service
  let admin: Caller
  beforeAll(async () => {
    mock = await startMockEngine()
    service = await startEmbedded({ catalog: createCatalog(mock.url) })
    admin = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await mock?.[Symbol.asyncDispose]()
  })

  const keyWith = async (spend_limit: unknown) => {
    const { status, body } = await admin.rest('POST', '/v1/keys', { name: 'app', scopes: ['inference', 'billing:read'], spend_limit })
    expect(status).toBe(201)
    return { id: body.id as string, ...createCaller(service, body.key) }
  }
  const send = (caller: Caller, model = 'plain') =>
    caller.openai.chat.completions.create({ model, max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] })

  it('a key spends up to its limit, and no engine is called above it', async () => {
    // A call holds what 100 tokens cost at the most, and costs 25.
    const key = await keyWith({ amount_usd: '0.00012', period: 'day' })
    await send(key)
    const chatsBefore = mock.chats
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => send(key)))
    const refusals = results.filter((result) => result.status === 'rejected').map((result) => result.reason)
    expect(refusals.length).toBeGreaterThan(0)
    for (const refusal of refusals) {
      expect(refusal).toMatchObject({ status: 429, code: 'insufficient_quota' })
      expect(refusal.message).toContain("does not fit the key's spend limit of 0.00012 USD a day")
    }
    expect(mock.chats - chatsBefore).toBe(20 - refusals.length)
    const { body } = await admin.rest('GET', `/v1/keys/${key.id}`)
    const midnight = Math.ceil(Date.now() / 86_400_000) * 86_400
    const spent = (25 * (21 - refusals.length)) / 1_000_000
    expect(body.spend_limit).toEqual({ amount_usd: '0.00012', period: 'day', spent_usd: String(spent), held_usd: '0', resets_at: midnight })

    await admin.rest('PATCH', `/v1/keys/${key.id}`, { spend_limit: { amount_usd: '0.00001', period: 'total' } })
    await expect(send(key)).rejects.toMatchObject({ code: 'insufficient_quota' })
    const isCovered = async () =>
      (await key.rest('POST', '/v1/chat/completions/quote', { model: 'plain', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }))
        .body.is_covered
    expect(await isCovered()).toBe(false)
    const lifted = await admin.rest('PATCH', `/v1/keys/${key.id}`, { spend_limit: null })
    expect(lifted.body.spend_limit).toBeNull()
    expect(await isCovered()).toBe(true)
    await send(key)
  })

  it('keys that a limited key created spend up to its limit together', async () => {
    const spend_limit = { amount_usd: '0.00012', period: 'day' }
    const created = await admin.rest('POST', '/v1/keys', { name: 'parent', scopes: ['admin'], spend_limit })
    const parent = createCaller(service, created.body.key)
    const children = await Promise.all(
      ['one', 'two'].map(async (name) => createCaller(service, (await parent.rest('POST', '/v1/keys', { name })).body.key)),
    )
    const chatsBefore = mock.chats
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => send(children[i % 2]!)))
    const refusals = results.filter((result) => result.status === 'rejected').map((result) => result.reason)
    for (const refusal of refusals) expect(refusal).toMatchObject({ status: 429, code: 'insufficient_quota' })
    const charged = 25 * (mock.chats - chatsBefore)
    expect(mock.chats - chatsBefore).toBe(20 - refusals.length)
    expect(charged).toBeGreaterThan(0)
    expect(charged).toBeLessThanOrEqual(120)
    const { body } = await admin.rest('GET', `/v1/keys/${created.body.id}`)
    expect(nano(body.spend_limit.spent_usd)).toBe(BigInt(charged) * 1_000n)
  })

  it.each([
    [{ amount_usd: '1' }, 'missing_required_parameter', 'spend_limit.period'],
    [{ amount_usd: '1', period: 'week' }, 'unsupported_value', 'spend_limit.period'],
    [{ amount_usd: '-1', period: 'day' }, 'unsupported_value', 'spend_limit.amount_usd'],
    [{ amount_usd: 'much', period: 'day' }, 'unsupported_value', 'spend_limit.amount_usd'],
    [{ amount_usd: '99999999', period: 'day' }, 'unsupported_value', 'spend_limit.amount_usd'],
  ])('a limit of %j is refused as %s', async (spend_limit, code, param) => {
    const { status, body } = await admin.rest('POST', '/v1/keys', { name: 'app', spend_limit })
    expect({ status, code: body.error.code, param: body.error.param }).toEqual({ status: 400, code, param })
  })

  it('a charge can be recomputed from its record, in the tier that the call reached', async () => {
    const key = await keyWith(null)
    await send(key, 'tiered')
    const { body } = await admin.rest('GET', `/v1/usage?key_id=${key.id}`)
    expect(body.data[0]).toMatchObject({
      input_tokens: 16,
      cached_input_tokens: 4,
      cache_write_tokens: 0,
      output_tokens: 5,
      rates: { input_tokens: '2', cached_input_tokens: '1', output_tokens: '2' },
      amount_usd: '0.000046',
    })
    const model = await admin.rest('GET', '/v1/models/tiered')
    expect(model.body.price).toMatchObject({
      cache_write: '1',
      tiers: [{ above_input_tokens: 10, input: '2', cached_input: '1', cache_write: '2', output: '2' }],
    })
  })

  it('usage is summed, and exported as a table', async () => {
    const owner = await newOrganization(createCaller(service, service.key), service)
    for (const model of ['plain', 'plain', 'tiered']) await send(owner, model)
    const { body } = await owner.rest('GET', '/v1/usage/summary?group_by=day,model')
    const day = Math.floor(Date.now() / 86_400_000) * 86_400
    expect(body.total).toMatchObject({ calls: 3, input_tokens: 48, cached_input_tokens: 12, output_tokens: 15, amount_usd: '0.000096' })
    expect(body.data).toMatchObject([
      { day, model: 'plain', key_id: null, operation: null, calls: 2, amount_usd: '0.00005' },
      { day, model: 'tiered', calls: 1, amount_usd: '0.000046' },
    ])
    const summary = await owner.graphql(
      '{ usageSummary(groupBy: [MODEL, KEY]) { groups { model { id supportsVision } apiKey { name } totals { amount } } } }',
    )
    expect(summary.data.usageSummary.groups[0]).toEqual({
      model: { id: 'plain', supportsVision: false },
      apiKey: { name: 'First admin key' },
      totals: { amount: '0.00005' },
    })
    const table = await owner.rest('GET', '/v1/usage?format=csv')
    expect(table.headers.get('content-type')).toContain('text/csv')
    const rows = (table.body as string).trimEnd().split('\r\n')
    expect(rows.map((row) => row.split(',')[2])).toEqual(['model', 'tiered', 'plain', 'plain'])
    const wrong = await owner.rest('GET', '/v1/usage/summary?since=1700000001')
    expect({ status: wrong.status, param: wrong.body.error.param }).toEqual({ status: 400, param: 'since' })
    expect((await (await keyWith(null)).rest('GET', '/v1/usage/summary')).status).toBe(200)
    const blind = (await owner.rest('POST', '/v1/keys', { name: 'blind', scopes: ['inference'] })).body.key
    expect((await createCaller(service, blind).rest('GET', '/v1/usage/summary')).body.error.code).toBe('permission_denied')
  })

  it('the operator corrects a balance once per reference', async () => {
    const owner = await newOrganization(createCaller(service, service.key), service)
    const operator = createCaller(service, service.key)
    const adjust = (amount_usd: string) =>
      operator.rest('POST', `/v1/organizations/${owner.organizationId}/adjustments`, { amount_usd, reference: 'ticket-7' })
    const first = await adjust('-2.5')
    expect(first).toMatchObject({
      status: 201,
      body: { kind: 'adjustment', amount_usd: '-2.5', reference: 'ticket-7', balance_usd: '7.5' },
    })
    expect((await adjust('-2.5')).body).toEqual(first.body)
    expect((await adjust('-2')).body.error).toMatchObject({ code: 'idempotency_conflict', param: 'reference' })
    expect((await owner.rest('GET', '/v1/wallet')).body.balance_usd).toBe('7.5')
  })

  it('charges and a low balance are reported over a socket, and resumed after a cursor', async () => {
    const owner = await newOrganization(createCaller(service, service.key), service, { creditUsd: '0.0001' })
    const set = await owner.rest('PATCH', '/v1/organization', { low_balance_threshold_usd: '0.00006' })
    expect(set.body.low_balance_threshold_usd).toBe('0.00006')
    const refused = await owner.rest('PATCH', '/v1/organization', { low_balance_threshold_usd: '0' })
    expect(refused.body.error).toMatchObject({ code: 'unsupported_value', param: 'low_balance_threshold_usd' })
    for (const model of ['plain', 'plain']) await send(owner, model)

    const socket = owner.socket()
    const follow = async (query: string, count: number) => {
      const seen: Record<string, unknown>[] = []
      for await (const { data, errors } of socket.iterate<Record<string, Record<string, unknown>>>({ query })) {
        expect(errors).toBeUndefined()
        seen.push(...Object.values(data!))
        if (seen.length === count) break
      }
      return seen
    }
    const usage = (after: string) =>
      `subscription { usageRecorded(after: "${after}") { cursor record { amount model { id supportsVision } } } }`
    const events = await follow(usage('0'), 2)
    const record = { amount: '0.000025', model: { id: 'plain', supportsVision: false } }
    expect(events.map((event) => event.record)).toEqual([record, record])
    const [first, last] = events.map(({ cursor }) => String(cursor))
    expect(await follow(usage(first!), 1)).toEqual([events[1]])

    const wallet = (after: string) =>
      `subscription { walletChanged(after: "${after}") { balance isLow crossed cursor wallet { available } } }`
    expect(await follow(wallet(first!), 1)).toEqual([
      { balance: '0.00005', isLow: true, crossed: 'FELL', cursor: last, wallet: { available: '0.00005' } },
    ])
    const rising = follow(wallet(last!), 1)
    await createCaller(service, service.key).rest('POST', `/v1/organizations/${owner.organizationId}/top-ups`, {
      amount_usd: '1',
      reference: 'more',
    })
    expect(await rising).toMatchObject([{ balance: '1.00005', isLow: false, crossed: 'ROSE' }])
    await socket.dispose()
  })
})
