import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/**
 * One vendor under several names, because each engine remembers its failures: what one test does to its engine is not
 * the next one's.
 */
const ENGINES = ['answers', 'streams', 'allows', 'stays', 'repeats', 'breaks', 'rests', 'renames', 'waits'] as const

/** Of each engine a model at 1 USD per million tokens; what stands in for it costs ten times as much. */
const createCatalog = (main: string, spare: string) => `
engines:
${ENGINES.map((name) => `  ${name}: { kind: openai, base_url: "${main}", badge: regional, first_byte_seconds: ${name === 'waits' ? 1 : 60} }`).join('\n')}
  spare: { kind: openai, base_url: "${spare}", badge: cloud }
models:
${ENGINES.map(
  (name) =>
    `  - { id: ${name}, engine: ${name}, engine_model: main-1, kind: chat, max_output_tokens: 100, price: { input: "1", output: "1" }, fallbacks: [other/spare], aliases: [also-${name}] }`,
).join('\n')}
  - { id: other/spare, engine: spare, engine_model: spare-1, kind: chat, max_output_tokens: 100, price: { input: "10", output: "10" }, aliases: [the-spare] }
`
/** The mock's 20 tokens in and 5 out. */
const MAIN_PRICE = 25_000n
const SPARE_PRICE = 250_000n
const SERVED_BY_SPARE = 'answered_by:other/spare'

describe('Model with a fallback, over REST and GraphQL', () => {
  let main: MockEngine
  let spare: MockEngine
  let service: Service
  let caller: Caller
  let before: { main: number; spare: number; balance: bigint }
  beforeAll(async () => {
    main = await startMockEngine()
    spare = await startMockEngine()
    service = await startEmbedded({ catalog: createCatalog(main.url, spare.url) })
    caller = await newOrganization(createCaller(service, service.key), service)
  })
  afterAll(async () => {
    await service?.close()
    await main[Symbol.asyncDispose]()
    await spare[Symbol.asyncDispose]()
  })
  const balance = async () => nano((await balancedWallet(caller)).balance_usd)
  beforeEach(async () => {
    main.failWith(null)
    spare.failWith(null)
    before = { main: main.chats, spare: spare.chats, balance: await balance() }
  })
  const newChats = () => [main.chats - before.main, spare.chats - before.spare]
  async function charged(): Promise<bigint> {
    await eventually(async () => nano((await caller.rest('GET', '/v1/wallet')).body.held_usd) === 0n)
    return before.balance - (await balance())
  }
  const send = (model: string, { by = caller, say = 'Hello', ...fields }: { by?: Caller; say?: string; stream?: boolean } = {}) =>
    by.rest('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: say }], ...fields })

  it('serves calls itself while it can', async () => {
    const { status, headers, body } = await send('answers')
    expect([status, headers.get('x-kis-warning'), body.model, newChats()]).toEqual([200, null, 'main-1', [1, 0]])
    expect(await charged()).toBe(MAIN_PRICE)
  })

  it('uses the fallback after a failure, which is named, charged and recorded', async () => {
    main.failWith(503)
    const { status, headers, body } = await send('answers')
    expect([status, headers.get('x-kis-warning'), body.model]).toEqual([200, SERVED_BY_SPARE, 'spare-1'])
    // Once more, then the other.
    expect(newChats()).toEqual([2, 1])
    expect(await charged()).toBe(SPARE_PRICE)
    expect((await caller.rest('GET', '/v1/usage?limit=1')).body.data[0]).toMatchObject({ model: 'other/spare', input_tokens: 16 })
    const { data } = await caller.graphql(
      'mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { model { id } warnings cost } }',
      { input: { request: { model: 'answers', messages: [{ role: 'user', content: 'Hello' }] } } },
    )
    expect(data.createChatCompletion).toMatchObject({ model: { id: 'other/spare' }, warnings: [SERVED_BY_SPARE] })
    expect(nano(data.createChatCompletion.cost)).toBe(SPARE_PRICE)
  })

  it('uses the fallback after a failure before the first byte of a stream', async () => {
    main.failWith(500)
    const { status, headers, body } = await send('streams', { stream: true })
    expect([status, headers.get('x-kis-warning')]).toEqual([200, SERVED_BY_SPARE])
    expect(body).toMatch(/spare-1[\s\S]*data: \[DONE\]\n\n$/)
    expect(body).not.toContain('error')
    expect(await charged()).toBe(SPARE_PRICE)
  })

  it('yields a broken stream and one error, without the fallback', async () => {
    const { status, body } = await send('breaks', { stream: true, say: 'cut' })
    expect(status).toBe(200)
    const events = (body as string).split('\n\n').filter(Boolean)
    expect(events.map((event) => (event.includes('"error"') ? 'error' : 'chunk'))).toEqual(['chunk', 'chunk', 'error'])
    expect([events[1]?.includes('Hello'), body.includes('[DONE]')]).toEqual([true, false])
    expect(JSON.parse(events[2]!.replace('data: ', '')).error.code).toBe('engine_error')
    expect(newChats()).toEqual([1, 0])
    expect(await charged()).toBe(0n)
  })

  it('uses the fallback after a timeout, and both are paid', async () => {
    spare.openGate()
    const { status, headers, body } = await send('waits', { stream: true, say: 'gate' })
    expect([status, headers.get('x-kis-warning'), body.includes('[DONE]')]).toEqual([200, SERVED_BY_SPARE, true])
    expect(newChats()).toEqual([1, 1])
    // The silent engine has the input, and bills it.
    const [spared, waited] = (await caller.rest('GET', '/v1/usage?limit=2')).body.data
    expect(waited).toMatchObject({ output_tokens: 0, source: 'counted', request_id: spared.request_id })
    expect(nano(waited.amount_usd)).toBeGreaterThan(0n)
    expect(await charged()).toBe(SPARE_PRICE + nano(waited.amount_usd))
  })

  it('uses no fallback outside the allowlist of the key, and allows it by an alias', async () => {
    main.failWith(401)
    const keyFor = async (models: readonly string[]) =>
      createCaller(service, (await caller.rest('POST', '/v1/keys', { name: 'narrow', model_allowlist: models })).body.key)
    for (const stream of [false, true]) {
      const { status, body } = await send('allows', { by: await keyFor(['allows']), stream })
      expect([status, body.error?.code]).toEqual([503, 'engine_unavailable'])
    }
    expect(newChats()).toEqual([2, 0])
    expect((await send('also-allows', { by: await keyFor(['also-allows', 'the-spare']) })).headers.get('x-kis-warning')).toBe(
      SERVED_BY_SPARE,
    )
    expect(newChats()).toEqual([3, 1])
  })

  it('stays in the region of an organization with a residency policy', async () => {
    const regional = await newOrganization(createCaller(service, service.key), service)
    expect((await regional.rest('PATCH', '/v1/organization', { residency_policy: 'regional' })).status).toBe(200)
    await eventually(async () => !(await regional.openai.models.list()).data.some(({ id }) => id === 'other/spare'), 6_000)
    main.failWith(503)
    for (const stream of [false, true]) {
      const { status, body } = await send('stays', { by: regional, stream })
      expect([status, body.error?.code]).toEqual([503, 'engine_unavailable'])
    }
    expect(newChats()).toEqual([4, 0])
    expect((await balancedWallet(regional)).held_usd).toMatch(/^0(\.0+)?$/)
  })

  it('is retried for the saved retries and a tenth of the calls at most', async () => {
    main.failWith(500)
    const responses = await Promise.all(Array.from({ length: 30 }, () => send('repeats')))
    expect(responses.map(({ status }) => status)).toEqual(Array(30).fill(200))
    const [calls, fallbacks] = newChats()
    expect(fallbacks).toBe(30)
    expect(calls).toBeGreaterThanOrEqual(30 + 10)
    expect(calls).toBeLessThanOrEqual(30 + 10 + 3)
  })

  it('is skipped once its engine is down, and the fallback responds at once', async () => {
    main.failWith(503)
    for (let call = 0; call < 3; call++) await send('rests')
    expect(newChats()).toEqual([5, 3])
    const { headers } = await send('rests')
    expect([headers.get('x-kis-warning'), newChats()]).toEqual([SERVED_BY_SPARE, [5, 4]])
  })

  it('is found and charged by its alias, and listed once', async () => {
    expect((await send('also-renames')).body.model).toBe('main-1')
    expect(await charged()).toBe(MAIN_PRICE)
    expect((await caller.rest('GET', '/v1/usage?limit=1')).body.data[0].model).toBe('renames')
    expect((await caller.rest('GET', '/v1/models/also-renames')).body.id).toBe('renames')
    const ids = (await caller.openai.models.list()).data.map(({ id }) => id)
    expect(ids.toSorted()).toEqual([...ENGINES, 'other/spare'].toSorted())
  })
})
