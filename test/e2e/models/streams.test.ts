import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Client } from 'graphql-ws'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { balancedWallet, type Caller, createCaller, type Json, newOrganization } from '../../support/client.ts'
import { type MeteredCall, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { TcpProxy } from '../../support/engines/tcp-proxy.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Inside the project, so that the examples find their packages. */
const EXAMPLES = join(ROOT, 'node_modules/.cache/streams')
const PIECES = 20
const WHOLE = Array.from({ length: PIECES }, (_, i) => ` ${i + 1}`).join('')
const EVENTS = 'subscription ($id: ID!, $after: Cursor) { chatCompletionEvents(id: $id, after: $after) { id cursor textDelta cost } }'

/** The clients as the page for partners has them. */
interface Examples {
  readonly CHAT: string
  readonly createResumingClient: (url: string, key: string) => Pick<Client, 'subscribe' | 'dispose'>
  readonly streamWithApollo: (url: string, key: string, request: object) => { subscribe(observer: object): { unsubscribe(): void } }
}

async function loadExamples(): Promise<Examples> {
  const page = readFileSync(join(ROOT, 'docs/guide/streams.md'), 'utf8')
  const [graphqlWs, apollo] = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code]) => code!)
  mkdirSync(EXAMPLES, { recursive: true })
  writeFileSync(join(EXAMPLES, 'resuming-client.mjs'), graphqlWs!)
  writeFileSync(join(EXAMPLES, 'apollo.mjs'), apollo!)
  return { ...(await import(join(EXAMPLES, 'resuming-client.mjs'))), ...(await import(join(EXAMPLES, 'apollo.mjs'))) }
}

describe('Stream whose connection breaks midway', () => {
  let engine: MeteredEngine
  let service: Service
  let proxy: TcpProxy
  let operator: Caller
  let examples: Examples
  let scripts = 0
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    service = await startEmbedded({ catalog: mockCatalog(engine.url) })
    operator = createCaller(service, service.key)
    proxy = await TcpProxy.start(service.graphql)
    examples = await loadExamples()
  }, 60_000)
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await service?.close()
    await engine?.[Symbol.asyncDispose]()
    rmSync(EXAMPLES, { recursive: true, force: true })
  })

  /** A request for 20 numbered pieces, of which 7 come at once. */
  function script() {
    const newScript: Script = { id: `s${++scripts}`, pieces: PIECES, usage: 'end', allowed: 7, isNumbered: true }
    const request = { model: 'mock-chat', messages: [{ role: 'user' as const, content: JSON.stringify(newScript) }] }
    const call = (): MeteredCall => engine.calls.get(newScript.id)!
    return { request, call }
  }

  const socketUrl = () => `${proxy.url.replace('http', 'ws')}/graphql`
  const cut = async () => {
    await proxy.stop()
    await proxy.resume()
  }
  const pieces = (text: string) => text.split(' ').length - 1

  /** Streams a chat to its end. */
  const chatWith = (client: Pick<Client, 'subscribe'>, request: object, onEvent: (event: Json) => void) =>
    new Promise<void>((resolve, reject) => {
      const payload = { query: examples.CHAT, variables: { input: { request } } }
      client.subscribe<Json>(payload, {
        next: ({ data, errors }) => (errors ? reject(errors[0]) : onEvent(data.chatCompletion)),
        error: reject,
        complete: resolve,
      })
    })

  async function expectOneCharge(caller: Caller, call: MeteredCall): Promise<void> {
    expect(call.requests).toBe(1)
    const usage = async () => (await caller.rest('GET', '/v1/usage')).body.data
    await eventually(async () => (await usage()).length > 0)
    expect(await usage()).toMatchObject([{ output_tokens: PIECES }])
    await balancedWallet(caller)
  }

  it('continues with graphql-ws, each character once, for one charge', async () => {
    const caller = await newOrganization(operator, service)
    const { request, call } = script()
    const client = examples.createResumingClient(socketUrl(), caller.key)
    let text = ''
    let cost: string | null = null
    await chatWith(client, request, ({ textDelta, cost: charged }) => {
      text += textDelta
      cost = charged
      const allowed = pieces(text) === 7 ? 12 : pieces(text) === 12 ? PIECES + 1 : 0
      if (textDelta !== '' && allowed > 0) void cut().then(() => call().allow(allowed))
    })
    expect(text).toBe(WHOLE)
    expect(Number(cost)).toBeGreaterThan(0)
    await expectOneCharge(caller, call())
    await client.dispose()
  }, 60_000)

  it('continues with Apollo Client, each character once, for one charge', async () => {
    const caller = await newOrganization(operator, service)
    const { request, call } = script()
    let text = ''
    await new Promise<void>((resolve, reject) => {
      examples.streamWithApollo(socketUrl(), caller.key, request).subscribe({
        next({ data, error }: Json) {
          if (error) return reject(error)
          text += data.chatCompletion.textDelta
          if (pieces(text) === 7 && call().produced === 7) cut().then(() => call().allow(PIECES + 1), reject)
        },
        error: reject,
        complete: resolve,
      })
    })
    expect(text).toBe(WHOLE)
    await expectOneCharge(caller, call())
  }, 60_000)

  it('continues over server-sent events with Last-Event-ID, each character once, for one charge', async () => {
    const caller = await newOrganization(operator, service)
    const { request, call } = script()
    const rest = await TcpProxy.start(service.rest)
    const headers = {
      ...{ authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
      ...{ 'idempotency-key': 'sse', 'x-kis-resumable': 'true' },
    }
    const body = JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } })
    let read = await fetch(`${rest.url}/v1/chat/completions`, { method: 'POST', headers, body })
    const id = read.headers.get('x-kis-stream-id')!
    let text = ''
    let last = ''
    let usage: Json
    let isDone = false
    const readNext = async () => {
      let rest = ''
      for await (const piece of read.body!.pipeThrough(new TextDecoderStream())) {
        const events = (rest + piece).split('\n\n')
        rest = events.pop()!
        for (const event of events) {
          const data = /^data: (.*)$/m.exec(event)?.[1]
          if (data === '[DONE]') isDone = true
          if (!data || data === '[DONE]') continue
          last = /^id: (\d+)$/m.exec(event)![1]!
          const chunk = JSON.parse(data)
          text += chunk.choices[0]?.delta.content ?? ''
          usage = chunk.usage ?? usage
        }
      }
    }
    const broken = readNext().catch(() => undefined)
    await eventually(() => pieces(text) === 7)
    await rest.stop()
    await broken
    await rest.resume()
    call().allow(PIECES + 1)
    read = await fetch(`${rest.url}/v1/chat/completions/${id}/events?include_usage=true`, {
      headers: { ...headers, 'last-event-id': last },
    })
    await readNext()
    expect([text, isDone, usage.completion_tokens]).toEqual([WHOLE, true, PIECES])
    await expectOneCharge(caller, call())
    await rest[Symbol.asyncDispose]()
  }, 60_000)

  it('of the official SDK is joined by a repeat with its idempotency key, from the start', async () => {
    const caller = await newOrganization(operator, service)
    const { request, call } = script()
    const options = { headers: { 'Idempotency-Key': 'again' } }
    const openai = new OpenAI({ baseURL: `${service.rest}/v1`, apiKey: caller.key, maxRetries: 0 })
    const first = await openai.chat.completions.create({ ...request, stream: true }, options)
    let received = ''
    for await (const { choices } of first) {
      received += choices[0]?.delta.content ?? ''
      if (pieces(received) === 7) break
    }
    const second = await openai.chat.completions.create({ ...request, stream: true }, options)
    let text = ''
    for await (const { choices } of second) {
      text += choices[0]?.delta.content ?? ''
      if (pieces(text) === 7) call().allow(PIECES + 1)
    }
    expect(text).toBe(WHOLE)
    await expectOneCharge(caller, call())
  }, 60_000)

  it('can be read again after its end, is unknown to other keys, and refuses an invalid cursor', async () => {
    const caller = await newOrganization(operator, service)
    const otherTenant = await newOrganization(operator, service)
    const { request, call } = script()
    const client = caller.socket()
    let last: Json
    for await (const { data } of client.iterate<Json>({ query: examples.CHAT, variables: { input: { request } } })) {
      last = data.chatCompletion
      call().allow(PIECES + 1)
    }
    const follow = async (by: Caller, id: string, after: string | null) => {
      let text = ''
      for await (const { data, errors } of by.socket().iterate<Json>({ query: EVENTS, variables: { id, after } })) {
        if (errors) return errors[0]?.extensions?.code
        text += data.chatCompletionEvents.textDelta
      }
      return text
    }
    expect(await follow(caller, last.id, null)).toBe(WHOLE)
    expect(await follow(caller, last.id, '18')).toBe(' 19 20')
    expect(await follow(caller, last.id, last.cursor)).toBe('')
    for (const after of ['1000', '-1', 'x']) expect(await follow(caller, last.id, after)).toBe('INVALID_REQUEST')
    for (const [by, id] of [
      [otherTenant, last.id],
      [caller, `${last.id}0`],
    ] as const)
      expect(await follow(by, id, null)).toBe('NOT_FOUND')
    await expectOneCharge(caller, call())
  }, 60_000)

  it('stops at once when its client ends the subscription, and its output is charged', async () => {
    const caller = await newOrganization(operator, service)
    const { request, call } = script()
    const client = caller.socket()
    for await (const { data } of client.iterate<Json>({ query: examples.CHAT, variables: { input: { request } } }))
      if (data.chatCompletion.textDelta.endsWith('7')) break
    await eventually(() => call().closedAt !== null)
    await eventually(async () => (await caller.rest('GET', '/v1/usage')).body.data[0]?.output_tokens === 7)
  }, 60_000)

  it('ends for its followers when the key is revoked, and graphql-ws clients do not reconnect', async () => {
    const caller = await newOrganization(operator, service)
    const { request } = script()
    const key = (await caller.rest('POST', '/v1/keys', { name: 'short' })).body
    const client = examples.createResumingClient(socketUrl(), key.key ?? key.secret)
    const error = await chatWith(client, request, ({ textDelta }) => {
      if (textDelta.endsWith(' 7')) void caller.rest('DELETE', `/v1/keys/${key.id}`)
    }).then(
      () => undefined,
      (thrown) => thrown,
    )
    expect(error?.code ?? error?.extensions?.code).toBeOneOf([4401, 'INVALID_API_KEY'])
  }, 60_000)
})
