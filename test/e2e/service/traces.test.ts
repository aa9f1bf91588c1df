import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mockCatalog } from '../../support/catalog.ts'
import { type Caller, createCaller, newOrganization } from '../../support/client.ts'
import { METERED_INPUT_TOKENS, MeteredEngine, type Script } from '../../support/engines/metered-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { OtlpReceiver } from '../../support/otlp-receiver.ts'
import { type Service, type ServiceOptions, startEmbedded, startFiveProcesses } from '../../support/processes/service.ts'

const SECRET_TEXT = 'a-prompt-that-nobody-may-read'
const CLIENT_SPAN = '00f067aa0ba902b7'
/** Spans of a streamed chat, from the door to the stores and the engine. */
const NAMES = [
  /^POST \/v1\/chat\/completions$/,
  /^gateway: ChatCompletionChunks$/,
  /^inference: ChatCompletion/,
  /^billing: PlaceHold$/,
  /^billing: SettleHold$/,
  /^updateOne wallets$/,
  /^chat /,
]

const STARTS: readonly (readonly [string, (options: ServiceOptions) => Promise<Service>, readonly string[]])[] = [
  ['one process', startEmbedded, ['kis']],
  ['five processes', startFiveProcesses, ['kis-rest-adapter', 'kis-gateway', 'kis-inference', 'kis-billing']],
]

describe.each(STARTS)('Traces of %s', (_name, start, services) => {
  let engine: MeteredEngine
  let receiver: OtlpReceiver
  let service: Service
  let caller: Caller & { readonly organizationId: string }
  beforeAll(async () => {
    engine = await MeteredEngine.start()
    receiver = await OtlpReceiver.start()
    service = await start({ catalog: mockCatalog(engine.url), env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, KIS_LOG_LEVEL: 'info' } })
    caller = await newOrganization(createCaller(service, service.key), service)
  }, 120_000)
  afterAll(async () => {
    await service?.close()
    await receiver?.[Symbol.asyncDispose]()
    await engine?.[Symbol.asyncDispose]()
  })

  const ofTrace = (traceId: string) => receiver.spans.filter((span) => span.traceId === traceId)
  const hasRoot = (traceId: string) => ofTrace(traceId).some(({ parentSpanId }) => parentSpanId === CLIENT_SPAN)
  const chat = async (script: Script, traceparent: string) => {
    const response = await fetch(`${service.rest}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json', traceparent },
      body: JSON.stringify({
        model: 'mock-chat',
        stream: true,
        messages: [
          { role: 'system', content: SECRET_TEXT },
          { role: 'user', content: JSON.stringify(script) },
        ],
      }),
    })
    await response.text()
    return response
  }

  it('form one connected tree for a streamed chat, from the entry point to the stores and the engine', async () => {
    const traceId = randomBytes(16).toString('hex')
    const response = await chat({ id: 'traced', pieces: 5, usage: 'end' }, `00-${traceId}-${CLIENT_SPAN}-01`)
    expect(response.status).toBe(200)
    const isConnected = () => {
      const ids = new Set([CLIENT_SPAN, ...ofTrace(traceId).map(({ spanId }) => spanId)])
      return ofTrace(traceId).every(({ parentSpanId }) => ids.has(parentSpanId ?? ''))
    }
    // Each process sends its spans once a second, in whatever order.
    await eventually(
      () =>
        hasRoot(traceId) &&
        NAMES.every((like) => ofTrace(traceId).some(({ name }) => like.test(name))) &&
        services.every((name) => ofTrace(traceId).some((span) => span.service === name)) &&
        isConnected(),
    )
    const spans = ofTrace(traceId)
    if (process.env.KIS_PRINT_TRACE) console.log(receiver.tree(traceId))

    const names = spans.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(NAMES.map((like) => expect.stringMatching(like))))
    const call = spans.find(({ attributes }) => attributes['gen_ai.operation.name'] === 'chat')!
    expect(call).toMatchObject({
      kind: 3,
      attributes: {
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': expect.any(String),
        'gen_ai.usage.input_tokens': METERED_INPUT_TOKENS,
        'gen_ai.usage.output_tokens': 5,
        'gen_ai.response.time_to_first_chunk': expect.any(Number),
      },
    })
    const requestId = response.headers.get('x-request-id')
    const root = spans.find(({ parentSpanId }) => parentSpanId === CLIENT_SPAN)!
    expect(root).toMatchObject({ name: 'POST /v1/chat/completions', kind: 2, attributes: { 'kis.request_id': requestId } })
    for (const secret of [SECRET_TEXT, caller.key]) expect(receiver.text.includes(secret)).toBe(false)
    const log = () => [...service.processes.values()].map(({ errors }) => errors).join('\n')
    await eventually(() => log().includes(`"requestId":"${requestId}","traceId":"${traceId}"`))
  })

  it('have no spans of internal tasks', () => {
    const roots = receiver.spans.filter(({ parentSpanId }) => !parentSpanId).map(({ name }) => name)
    expect(roots.filter((name) => !/^(?:GET|POST) \//.test(name))).toEqual([])
  })

  it('record which span failed, and why', async () => {
    const traceId = randomBytes(16).toString('hex')
    await chat({ id: 'refused', pieces: 1, usage: 'end', fails: 'refuses' }, `00-${traceId}-${CLIENT_SPAN}-01`)
    await eventually(() => hasRoot(traceId) && ofTrace(traceId).some(({ attributes }) => 'gen_ai.operation.name' in attributes))
    const call = ofTrace(traceId).find(({ attributes }) => 'gen_ai.operation.name' in attributes)!
    expect(call).toMatchObject({ failed: true, attributes: { 'error.type': 'engine_unavailable' } })
  })

  it('begin at the gateway for operations over sockets', async () => {
    const traceId = randomBytes(16).toString('hex')
    const client = caller.socket()
    const operation = { query: '{ organization { id } }', extensions: { traceparent: `00-${traceId}-${CLIENT_SPAN}-01` } }
    for await (const _result of client.iterate(operation));
    await client.dispose()
    await eventually(() => hasRoot(traceId) && ofTrace(traceId).some(({ name }) => name.startsWith('billing: ')))
  })

  it('are not recorded when the caller disables sampling', async () => {
    const [left, sampled] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
    await chat({ id: 'left', pieces: 1, usage: 'end' }, `00-${left}-${CLIENT_SPAN}-00`)
    await chat({ id: 'kept', pieces: 1, usage: 'end' }, `00-${sampled}-${CLIENT_SPAN}-01`)
    await eventually(() => hasRoot(sampled))
    expect(ofTrace(left)).toEqual([])
  })
})
