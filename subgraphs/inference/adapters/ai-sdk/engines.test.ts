import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { VendorCloud } from '../../../../test/support/engines/vendor-cloud.ts'
import {
  ANTHROPIC_WIRE,
  BEDROCK_WIRE,
  beginning,
  COHERE_WIRE,
  GOOGLE_WIRE,
  MISTRAL_WIRE,
  saying,
} from '../../../../test/support/engines/vendor-wires.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import type { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { ResponseTooLarge, StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { type EmbeddingCall, NeverSent, type ProtocolObject } from '../../ports/engines.ts'
import { TIMEOUTS } from '../vendor/limits.ts'
import { type AiSdkEngineOptions, openAiSdkEngines } from './engines.ts'

const NEVER = new AbortController().signal
const CALL = { engineModel: 'a-model', requestId: 'req_1', maxOutputTokens: 1_000, warn: () => undefined }
const REQUEST = { messages: [{ role: 'user', content: 'Hello' }] }
const NO_SETTINGS = { apiKey: 'key', region: null, accessKeyId: null, secretAccessKey: null, sessionToken: null }

const enginesOn = (cloud: VendorCloud, options: Pick<AiSdkEngineOptions, 'kind'> & Partial<AiSdkEngineOptions>) =>
  openAiSdkEngines({ ...NO_SETTINGS, name: 'vendor', baseUrl: cloud.url, clock: systemClock, ...options })

const catchError = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )
const errorCode = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error: KisError) => error.code,
  )

afterEach(() => vi.unstubAllEnvs())

describe('Vendor connection', () => {
  it('fails with engine_timeout and closes when the vendor does not respond or stops sending', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'anthropic', timeouts: { ...TIMEOUTS, headersMs: 200, streamHeadersMs: 200 } })
    cloud.answering = () => undefined
    for (const call of ['complete', 'stream'] as const) {
      const error = await catchError(engines.chat[call](CALL, REQUEST, NEVER))
      expect(error).toBeInstanceOf(StoppedByLimit)
      expect(error).toMatchObject({ code: 'engine_timeout' })
    }
    cloud.answering = beginning(ANTHROPIC_WIRE, { text: ['Hel', 'lo'] }, 4, () => undefined)
    await using patient = await enginesOn(cloud, { kind: 'anthropic', timeouts: { ...TIMEOUTS, bodyIdleMs: 1_000 } })
    const chunks = await patient.chat.stream(CALL, REQUEST, NEVER)
    await chunks.next()
    expect(
      await errorCode(
        (async () => {
          for await (const _ of chunks);
        })(),
      ),
    ).toBe('engine_timeout')
    await Promise.all(cloud.received.map(({ closed }) => closed))
  })

  it('limits the size of a response', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'google' })
    cloud.answering = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const piece = Buffer.alloc(1 << 20, ' ')
      const more = () => {
        while (!response.destroyed && response.write(piece));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    expect(await catchError(engines.chat.complete(CALL, REQUEST, NEVER))).toBeInstanceOf(ResponseTooLarge)
    await cloud.last.closed
  })

  it.each(['complete', 'stream'] as const)('distinguishes a failure to connect from a request that was sent: %s', async (call) => {
    await using cloud = await VendorCloud.start()
    cloud.answering = () => undefined
    await using engines = await enginesOn(cloud, { kind: 'anthropic' })
    const leaving = new AbortController()
    const sent = catchError(engines.chat[call](CALL, REQUEST, leaving.signal))
    await eventually(() => cloud.received.length > 0)
    leaving.abort()
    expect(await sent).not.toBeInstanceOf(NeverSent)
    // Connections to this server never finish the TLS handshake.
    const sockets: Socket[] = []
    await using silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const baseUrl = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/`
    await using away = await enginesOn(cloud, { kind: 'anthropic', baseUrl })
    expect(await catchError(away.chat[call](CALL, REQUEST, AbortSignal.timeout(50)))).toBeInstanceOf(NeverSent)
    for (const socket of sockets) socket.destroy()
  })

  const ALL = ['anthropic', 'google', 'mistral', 'cohere', 'bedrock'] as const
  const WIRES = { anthropic: ANTHROPIC_WIRE, google: GOOGLE_WIRE, mistral: MISTRAL_WIRE, cohere: COHERE_WIRE, bedrock: BEDROCK_WIRE }
  const createSettings = (kind: (typeof ALL)[number]) => ({ kind, ...(kind === 'bedrock' && { region: 'eu-west-1' }) })

  it.each(ALL)('of %s limits the size of an event', async (kind) => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, createSettings(kind))
    const isFrames = kind === 'bedrock'
    let sent = 0
    cloud.answering = (response) => {
      response.writeHead(200, { 'content-type': WIRES[kind].contentType })
      // A frame of nearly 2 GiB, or an event with ever more lines.
      const piece = isFrames ? Buffer.alloc(1 << 16, 'x') : Buffer.from(`data: ${'x'.repeat(1 << 16)}\n`)
      response.write(isFrames ? Buffer.from([0x7f, 0xff, 0xff, 0xff]) : 'data: ')
      const more = () => {
        while (!response.destroyed && response.write(piece)) sent += piece.length
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    const reading = (async () => {
      for await (const _ of await engines.chat.stream(CALL, REQUEST, NEVER));
    })()
    expect(await errorCode(reading)).toBe('engine_error')
    await cloud.last.closed
    expect(sent).toBeLessThan(32 * 2 ** 20)
  })

  it.each(ALL)('of %s accepts long events, and events split at any byte', async (kind) => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, createSettings(kind))
    const text = ['م'.repeat(500_000), '🌙 é']
    cloud.answering = (response) => {
      response.writeHead(200, { 'content-type': WIRES[kind].contentType })
      const bytes = Buffer.concat(WIRES[kind].events({ text }))
      for (let at = 0; at < bytes.length; at += 65_521) response.write(bytes.subarray(at, at + 65_521))
      response.end()
    }
    let read = ''
    for await (const chunks of await engines.chat.stream(CALL, REQUEST, NEVER))
      for (const { choices } of chunks) read += (choices as { delta: { content?: string } }[])[0]?.delta.content ?? ''
    expect(read === text.join('')).toBe(true)
  })

  it('closes with engine_timeout when it brings nothing but comments', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'anthropic', timeouts: { ...TIMEOUTS, bodyIdleMs: 300 } })
    cloud.answering = beginning(ANTHROPIC_WIRE, { text: ['Hel', 'lo'] }, 4, (response) => {
      const dripping = setInterval(() => response.write('event: ping\ndata: {"type": "ping"}\n\n: still here\n\n'), 20)
      response.once('close', () => clearInterval(dripping))
    })
    const reading = (async () => {
      for await (const _ of await engines.chat.stream(CALL, REQUEST, NEVER));
    })()
    expect(await errorCode(reading)).toBe('engine_timeout')
    await cloud.last.closed
  })

  it('refuses a compressed response', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'mistral' })
    cloud.answering = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      response.end(gzipSync(JSON.stringify(MISTRAL_WIRE.completion({ text: ['Hi.'] }))))
    }
    await expect(engines.chat.complete(CALL, REQUEST, NEVER)).rejects.toMatchObject({
      code: 'engine_error',
      message: expect.stringContaining('compressed'),
    })
  })

  it('follows no redirect', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'mistral' })
    cloud.answering = (response) => response.writeHead(302, { location: `${cloud.url}/elsewhere` }).end()
    expect(await errorCode(engines.chat.complete(CALL, REQUEST, NEVER))).toBe('engine_error')
    expect(cloud.received).toHaveLength(1)
  })

  it('reads keys and addresses only from its settings, never from the environment', async () => {
    for (const name of ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'AWS_BEARER_TOKEN_BEDROCK', 'AWS_SESSION_TOKEN', 'AWS_ACCESS_KEY_ID'])
      vi.stubEnv(name, 'from-the-environment')
    for (const name of ['ANTHROPIC_BASE_URL', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME'])
      vi.stubEnv(name, 'http://127.0.0.1:9')
    await using cloud = await VendorCloud.start()
    cloud.answering = saying(ANTHROPIC_WIRE, { text: ['Hi.'] })
    await using anthropic = await enginesOn(cloud, { kind: 'anthropic' })
    await anthropic.chat.complete(CALL, REQUEST, NEVER)
    cloud.answering = saying(BEDROCK_WIRE, { text: ['Hi.'] })
    const keys = { apiKey: null, region: 'eu-west-1', accessKeyId: 'AKIA0', secretAccessKey: 's' }
    await using bedrock = await enginesOn(cloud, { kind: 'bedrock', ...keys })
    await bedrock.chat.complete(CALL, REQUEST, NEVER)
    expect(JSON.stringify(cloud.received.map(({ headers }) => headers))).not.toContain('from-the-environment')
    expect(cloud.last.headers.authorization).toContain('Credential=AKIA0/')
  })

  it('keeps accounts and keys of the operator out of error messages', async () => {
    await using cloud = await VendorCloud.start()
    const message = 'User arn:aws:iam::123456789012:user/kis with AKIAIOSFODNN7EXAMPLE may not use key sk-ant-api03-abcdef'
    cloud.answering = (response) => response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ message }))
    await using engines = await enginesOn(cloud, { kind: 'bedrock', region: 'eu-west-1', apiKey: 'a-bedrock-key' })
    await expect(engines.chat.complete(CALL, REQUEST, NEVER)).rejects.toMatchObject({ message: 'User … with … may not use key …' })
  })

  it('sends a bearer key or a session token to Bedrock when configured', async () => {
    await using cloud = await VendorCloud.start()
    cloud.answering = saying(BEDROCK_WIRE, { text: ['Hi.'] })
    await using byKey = await enginesOn(cloud, { kind: 'bedrock', region: 'eu-west-1', apiKey: 'bedrock-key' })
    await byKey.chat.complete(CALL, REQUEST, NEVER)
    expect(cloud.last.headers.authorization).toBe('Bearer bedrock-key')
    const keys = { apiKey: null, region: 'eu-west-1', accessKeyId: 'AKIA0', secretAccessKey: 's', sessionToken: 'token' }
    await using bySession = await enginesOn(cloud, { kind: 'bedrock', ...keys })
    await bySession.chat.complete(CALL, REQUEST, NEVER)
    expect(cloud.last.headers['x-amz-security-token']).toBe('token')
  })
})

describe('Vendor chat', () => {
  it('returns text for a schema that the vendor takes as a tool, plain and streamed', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'bedrock', region: 'eu-west-1' })
    cloud.answering = saying(BEDROCK_WIRE, { calls: [{ id: 't1', name: 'json', arguments: ['{"city":', '"Riyadh"}'] }], ends: 'tools' })
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    const request = { ...REQUEST, response_format: { type: 'json_schema', json_schema: { name: 'city', schema } } }
    const completion = await engines.chat.complete({ ...CALL, engineModel: 'amazon.nova-lite-v1:0' }, request, NEVER)
    expect(completion.choices).toMatchObject([{ message: { content: '{"city":"Riyadh"}' }, finish_reason: 'stop' }])
    const chunks: ProtocolObject[] = []
    for await (const item of await engines.chat.stream({ ...CALL, engineModel: 'amazon.nova-lite-v1:0' }, request, NEVER))
      chunks.push(...item)
    const choices = chunks.flatMap(
      ({ choices: chunkChoices }) => chunkChoices as { delta: { content?: string }; finish_reason: string | null }[],
    )
    expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe('{"city":"Riyadh"}')
    expect(choices.at(-1)?.finish_reason).toBe('stop')
  })

  it('returns an empty reply with the reason content_filter for a prompt that Gemini blocks', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'google' })
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 7, totalTokenCount: 7 } }
    cloud.answering = (response, { path }) =>
      path.includes('stream')
        ? response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(blocked)}\n\n`)
        : response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(blocked))
    const completion = await engines.chat.complete(CALL, REQUEST, NEVER)
    expect(completion).toMatchObject({
      choices: [{ message: { content: null }, finish_reason: 'content_filter' }],
      usage: { prompt_tokens: 7, completion_tokens: 0 },
    })
    const chunks: ProtocolObject[] = []
    for await (const item of await engines.chat.stream(CALL, REQUEST, NEVER)) chunks.push(...item)
    expect(chunks.slice(1)).toMatchObject([
      { choices: [{ delta: {}, finish_reason: 'content_filter' }] },
      { choices: [], usage: { prompt_tokens: 7 } },
    ])
  })

  it('fails before the stream begins, and may be retried, when the vendor is overloaded at its first event', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'anthropic' })
    cloud.answering = (response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANTHROPIC_WIRE.brokenEvent)
    await expect(engines.chat.stream(CALL, REQUEST, NEVER)).rejects.toMatchObject({
      code: 'engine_unavailable',
      vendorCode: 'overloaded_error',
      shouldRetry: true,
    })
  })

  it('preserves the signatures of Gemini in a stream', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'google' })
    cloud.answering = saying(GOOGLE_WIRE, { calls: [{ id: 'fc_1', name: 'clock', arguments: [] }], ends: 'tools' })
    const chunks: ProtocolObject[] = []
    for await (const item of await engines.chat.stream(CALL, REQUEST, NEVER)) chunks.push(...item)
    expect(JSON.stringify(chunks)).toContain('"extra_content":{"google":{"thought_signature":"signed-by-google"}}')
  })
})

describe('Vendor embeddings', () => {
  const texts = ['السلام عليكم', 'peace']
  const vectors = [
    [3, 4],
    [0, 2],
  ]
  const call = (fields: Partial<EmbeddingCall>): EmbeddingCall => ({
    ...{ engineModel: 'm', requestId: 'req_1', dimensions: null, purpose: 'query' },
    ...fields,
  })

  interface Case {
    readonly kind: AiSdkEngineOptions['kind']
    readonly model: string
    readonly bodies: readonly object[]
    /** The response to each request. */
    readonly respond: (index: number) => unknown
    readonly tokens: number
    readonly source: 'provider' | 'counted'
  }
  const cases: readonly Case[] = [
    {
      kind: 'google',
      model: 'gemini-embedding-001',
      bodies: [{ requests: texts.map((text) => ({ content: { parts: [{ text }] }, taskType: 'RETRIEVAL_DOCUMENT' })) }],
      respond: () => ({ embeddings: vectors.map((values) => ({ values })) }),
      // Gemini reports no tokens.
      ...{ tokens: 12, source: 'counted' },
    },
    {
      kind: 'mistral',
      model: 'mistral-embed',
      bodies: [{ model: 'mistral-embed', input: texts }],
      respond: () => ({ data: vectors.map((embedding, index) => ({ embedding, index })), usage: { prompt_tokens: 9 } }),
      ...{ tokens: 9, source: 'provider' },
    },
    {
      kind: 'cohere',
      model: 'embed-v4.0',
      bodies: [{ texts, input_type: 'search_document', truncate: 'NONE' }],
      respond: () => ({ embeddings: { float: vectors }, meta: { billed_units: { input_tokens: 8 } } }),
      ...{ tokens: 8, source: 'provider' },
    },
    {
      kind: 'bedrock',
      model: 'amazon.titan-embed-text-v2:0',
      bodies: texts.map((inputText) => ({ inputText })),
      respond: (index) => ({ embedding: vectors[index], inputTextTokenCount: 4 }),
      ...{ tokens: 8, source: 'provider' },
    },
    {
      kind: 'bedrock',
      model: 'eu.cohere.embed-v4:0',
      bodies: [{ texts, input_type: 'search_document', truncate: 'NONE' }],
      respond: () => ({ embeddings: { float: vectors } }),
      ...{ tokens: 12, source: 'counted' },
    },
    {
      kind: 'bedrock',
      model: 'amazon.nova-2-multimodal-embeddings-v1:0',
      bodies: texts.map((value) => ({
        singleEmbeddingParams: { embeddingPurpose: 'GENERIC_INDEX', text: { value, truncationMode: 'NONE' } },
      })),
      respond: (index) => ({ embeddings: [{ embeddingType: 'TEXT', embedding: vectors[index] }] }),
      ...{ tokens: 12, source: 'counted' },
    },
  ]

  it.each(cases)('of $kind, $model: return the texts in order, vectors of length 1, and the tokens reported or counted', async (each) => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: each.kind, region: 'eu-west-1' })
    cloud.answering = (response, { body }) => {
      const index = Math.max(
        0,
        texts.findIndex((text) => JSON.stringify(body).includes(JSON.stringify(text))),
      )
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(each.respond(each.bodies.length === 1 ? 0 : index)))
    }
    const result = await engines.embedding.embed(call({ engineModel: each.model, purpose: 'passage' }), texts, NEVER)
    expect(result.vectors.map((vector) => [...vector].map((value) => Math.round(value * 10) / 10))).toEqual([
      [0.6, 0.8],
      [0, 1],
    ])
    expect([result.tokens, result.source]).toEqual([each.tokens, each.source])
    expect(cloud.received.map(({ body }) => body)).toEqual(
      expect.arrayContaining(each.bodies.map((body) => expect.objectContaining(deep(body)))),
    )
    expect(engines.embedding.maxBatch).toBeGreaterThanOrEqual(2)
  })

  it('pass on the query purpose, and the dimensions that the vendor supports', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'cohere' })
    cloud.answering = (response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ embeddings: { float: [new Array(256).fill(1)] }, meta: { billed_units: { input_tokens: 2 } } }))
    await engines.embedding.embed(call({ engineModel: 'embed-v4.0', dimensions: 256 }), ['x'], NEVER)
    expect(cloud.last.body).toMatchObject({ input_type: 'search_query', output_dimension: 256 })
    await expect(engines.embedding.embed(call({ engineModel: 'embed-v4.0', dimensions: 300 }), ['x'], NEVER)).rejects.toMatchObject({
      code: 'unsupported_value',
      param: 'dimensions',
    })
  })

  it('refuse too few vectors, other dimensions, and tokens', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'mistral' })
    for (const data of [
      [{ embedding: [1, 2] }],
      [{ embedding: [1, 2] }, { embedding: [1] }],
      [{ embedding: [0, 0] }, { embedding: [0, 0] }],
    ]) {
      cloud.answering = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
      expect(await errorCode(engines.embedding.embed(call({}), texts, NEVER))).toBe('engine_error')
    }
    expect(await errorCode(engines.embedding.embed(call({}), [[1, 2]], NEVER))).toBe('unsupported_value')
  })

  it('cancel the other requests when one fails', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'bedrock', region: 'eu-west-1' })
    cloud.answering = (response, { body }) => {
      if (body.inputText === 'bad') setTimeout(() => response.writeHead(500).end('{}'), 50)
    }
    const model = 'amazon.titan-embed-text-v2:0'
    expect(await errorCode(engines.embedding.embed(call({ engineModel: model }), ['waits', 'bad', 'waits too'], NEVER))).toBe(
      'engine_error',
    )
    await Promise.all(cloud.received.map(({ closed, body }) => (body.inputText === 'bad' ? undefined : closed)))
  })

  it('are refused for Anthropic, which has none', async () => {
    await using cloud = await VendorCloud.start()
    await using engines = await enginesOn(cloud, { kind: 'anthropic' })
    expect(await errorCode(engines.embedding.embed(call({}), texts, NEVER))).toBe('engine_error')
  })
})

/** Matches nested objects by the named fields only. */
function deep(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (Array.isArray(inner)) return [key, inner.map((item) => (typeof item === 'object' ? expect.objectContaining(deep(item)) : item))]
      return [key, typeof inner === 'object' && inner !== null ? expect.objectContaining(deep(inner)) : inner]
    }),
  )
}
