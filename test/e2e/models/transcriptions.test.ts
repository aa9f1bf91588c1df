import { toFile } from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { balancedWallet, type Caller, createCaller, nano, newOrganization } from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { type MockEngine, startMockEngine, TRANSCRIPT, TRANSCRIPT_DELTAS, TRANSCRIPT_USAGE } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const createCatalog = (url: string) => `
engines:
  mock: { kind: openai, base_url: "${url}", api_key: "sk-mock", badge: cloud }
models:
${['speech', 'speech-silent', 'speech-segmentless', 'speech-500']
  .map((id) => `  - { id: ${id}, engine: mock, kind: transcription, price: { audio: "0.006" } }`)
  .join('\n')}
${['live-speech', 'live-hang', 'live-cut', 'live-500']
  .map((id) => `  - { id: ${id}, engine: mock, kind: transcription, supports: [streaming], price: { audio: "0.006" } }`)
  .join('\n')}
  - { id: chat, engine: mock, kind: chat, max_output_tokens: 10, price: { input: "1", output: "1" } }
`

/** For longer than this nobody is known by an older policy. */
const PRINCIPAL_MS = 6_000
/** USD 0.006 a minute are 100,000 nano-USD a second. */
const NANO_OF_SECOND = 100_000n
const AUDIO = wav(2.5)

let mock: MockEngine
let service: Service
let caller: Caller & { readonly organizationId: string }

beforeAll(async () => {
  mock = await startMockEngine()
  service = await startEmbedded({ catalog: createCatalog(mock.url) })
  caller = await newOrganization(createCaller(service, service.key), service)
})
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
})

const audioFile = () => toFile(AUDIO, 'a meeting.wav')
const spent = async () => nano('10') - nano((await balancedWallet(caller)).balance_usd)

/** A form with the given fields; `file` as given. */
async function post(fields: readonly (readonly [string, string | Blob])[], headers: Record<string, string> = {}) {
  const body = new FormData()
  for (const [name, value] of fields) body.append(name, value)
  return send(body, headers)
}

async function send(body: FormData | string, headers: Record<string, string> = {}) {
  const response = await fetch(`${service.rest}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${caller.key}`, ...headers },
    body,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, error: text.startsWith('{') ? JSON.parse(text).error : undefined }
}

it('every response format follows the protocol, each charged for the seconds that the engine reports', async () => {
  const { transcriptions } = caller.openai.audio
  const createInput = async () => ({ file: await audioFile(), model: 'speech' })
  const before = await spent()
  const usage = { type: 'duration', seconds: 3 }
  expect(await transcriptions.create(await createInput())).toMatchObject({ text: TRANSCRIPT.text, usage })
  expect(await transcriptions.create({ ...(await createInput()), response_format: 'text' })).toBe(`${TRANSCRIPT.text}\n`)
  expect(await transcriptions.create({ ...(await createInput()), response_format: 'srt' })).toBe(
    '1\n00:00:00,000 --> 00:00:01,200\nHello from the mock.\n\n2\n00:00:01,200 --> 00:00:02,500\nمرحبا\n',
  )
  expect(await transcriptions.create({ ...(await createInput()), response_format: 'vtt' })).toBe(
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.200\nHello from the mock.\n\n00:00:01.200 --> 00:00:02.500\nمرحبا\n',
  )
  const verbose = await transcriptions.create({
    ...(await createInput()),
    response_format: 'verbose_json',
    timestamp_granularities: ['word'],
  })
  expect(verbose).toMatchObject({ duration: 2.5, language: 'english', segments: TRANSCRIPT.segments, usage })
  expect((await spent()) - before).toBe(5n * 3n * NANO_OF_SECOND)
})

it('the engine receives the request of the caller, with its own name of the model, and nothing else', async () => {
  await caller.openai.audio.transcriptions.create({
    file: await audioFile(),
    model: 'speech',
    language: 'ar',
    prompt: 'أسماء',
    temperature: 0.5,
    include: ['logprobs'],
  })
  expect(mock.requests.at(-1)).toEqual({
    model: 'speech',
    response_format: 'json',
    language: 'ar',
    prompt: 'أسماء',
    temperature: '0.5',
    'include[]': ['logprobs'],
    file: { name: 'audio.wav', size: AUDIO.length },
  })
})

async function readEvents(fields: object) {
  const events = []
  const stream = await caller.openai.audio.transcriptions.create({ file: await audioFile(), model: 'live-speech', ...fields, stream: true })
  for await (const event of stream) events.push(event)
  return events
}

it('a streaming client receives the events of a streaming engine, and pays for the file', async () => {
  const before = await spent()
  const deltas = TRANSCRIPT_DELTAS.map((delta) => ({ type: 'transcript.text.delta', delta }))
  const done = { type: 'transcript.text.done', text: TRANSCRIPT.text, usage: TRANSCRIPT_USAGE }
  expect(await readEvents({})).toEqual([...deltas, done])
  expect(mock.requests.at(-1)).toMatchObject({ model: 'live-speech', response_format: 'json', stream: 'true' })
  expect(await readEvents({ response_format: 'text' })).toEqual([...deltas, done])
  expect((await spent()) - before).toBe(5n * NANO_OF_SECOND)
})

it('speakers are streamed in segments, and audio is split as requested', async () => {
  const vad = { type: 'server_vad', threshold: 0.5, silence_duration_ms: 200 }
  const events = await readEvents({ response_format: 'diarized_json', chunking_strategy: vad })
  expect(events.filter(({ type }) => type === 'transcript.text.segment')).toMatchObject([{ speaker: 'A', start: 0 }, { start: 1.2 }])
  expect(mock.requests.at(-1)).toMatchObject({
    response_format: 'diarized_json',
    'chunking_strategy[type]': 'server_vad',
    'chunking_strategy[threshold]': '0.5',
    'chunking_strategy[silence_duration_ms]': '200',
  })
  await caller.openai.audio.transcriptions.create({ file: await audioFile(), model: 'speech', chunking_strategy: 'auto' })
  expect(mock.requests.at(-1)).toMatchObject({ chunking_strategy: 'auto' })
})

it('a stream by GraphQL has its cost in the last event', async () => {
  const query = `subscription T($input: TranscriptionInput!) { transcription(input: $input) { textDelta events audioSeconds cost rateLimits { requests { limit } } } }`
  const socket = caller.socket()
  const results = []
  const input = { model: 'live-speech', contentBase64: AUDIO.toString('base64') }
  for await (const result of socket.iterate<{ transcription: Record<string, unknown> }>({ query, variables: { input } }))
    results.push(result)
  await socket.dispose()
  expect(results.every(({ errors }) => errors === undefined)).toBe(true)
  const events = results.map(({ data }) => data!.transcription)
  expect(events.map(({ textDelta }) => textDelta).join('')).toBe(TRANSCRIPT.text)
  expect(events.at(-1)).toMatchObject({ events: [{ type: 'transcript.text.done' }], audioSeconds: 2.5, cost: '0.00025' })
  expect(events.slice(0, -1).every(({ cost }) => cost === null)).toBe(true)
})

it('a response and a stream report the remaining limits of the key', async () => {
  const { body } = await caller.rest('POST', '/v1/keys', { name: 'slow', scopes: ['inference'], requests_per_minute: 2 })
  const left = []
  for (const stream of ['false', 'true', 'true']) {
    const fields: [string, string | Blob][] = [
      ['model', 'live-speech'],
      ['file', file],
      ['stream', stream],
    ]
    const { status, headers } = await post(fields, { authorization: `Bearer ${body.key}` })
    left.push([status, headers.get('x-ratelimit-remaining-requests')])
  }
  expect(left).toEqual([
    [200, '1'],
    [200, '0'],
    [429, '0'],
  ])
})

it('a stream whose client disconnects stops its engine, and costs the whole file', async () => {
  const [before, abandoned] = [await spent(), mock.abandoned]
  const leaving = new AbortController()
  const { transcriptions } = caller.openai.audio
  const stream = await transcriptions.create({ file: await audioFile(), model: 'live-hang', stream: true }, { signal: leaving.signal })
  expect((await stream[Symbol.asyncIterator]().next()).value).toEqual({ type: 'transcript.text.delta', delta: TRANSCRIPT_DELTAS[0] })
  leaving.abort()
  await eventually(() => mock.abandoned === abandoned + 1)
  await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0')
  expect((await spent()) - before).toBe((5n * NANO_OF_SECOND) / 2n)
})

it('a stream that the engine breaks ends with an error event, one that it refuses starts with a status; neither costs anything', async () => {
  const before = await spent()
  const streamed = (id: string) =>
    post([
      ['model', id],
      ['file', file],
      ['stream', 'true'],
    ])
  const cut = await streamed('live-cut')
  expect(cut.status).toBe(200)
  const events = cut.text.split('\n\n').filter(Boolean)
  expect(events.map((event) => JSON.parse(event.slice('data: '.length)))).toMatchObject([
    { type: 'transcript.text.delta' },
    { error: { code: 'engine_error' } },
  ])
  expect(await streamed('live-500')).toMatchObject({ status: 502, error: { code: 'engine_error' } })
  expect(await spent()).toBe(before)
})

it('a stream with an idempotency key is replayed event by event, charged once', async () => {
  const [before, calls] = [await spent(), mock.transcriptions]
  const once = () =>
    post(
      [
        ['model', 'live-speech'],
        ['file', file],
        ['stream', 'true'],
      ],
      { 'idempotency-key': 'stream-1' },
    )
  const [first, second] = [await once(), await once()]
  expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 200, 'true'])
  expect(second.text).toBe(first.text)
  expect(mock.transcriptions).toBe(calls + 1)
  expect((await spent()) - before).toBe((5n * NANO_OF_SECOND) / 2n)
})

it('a streaming client receives events even from an engine without streaming', async () => {
  expect(await readEvents({ model: 'speech' })).toEqual([
    { type: 'transcript.text.delta', delta: TRANSCRIPT.text },
    { type: 'transcript.text.done', text: TRANSCRIPT.text, usage: { type: 'duration', seconds: 3 } },
  ])
})

it('an engine that reports no duration is charged by the duration of the file', async () => {
  const before = await spent()
  expect(await caller.openai.audio.transcriptions.create({ file: await audioFile(), model: 'speech-silent' })).toMatchObject({
    usage: { type: 'duration', seconds: 3 },
  })
  expect((await spent()) - before).toBe((5n * NANO_OF_SECOND) / 2n)
  const { body } = await caller.rest('GET', '/v1/usage?limit=1')
  expect(body.data[0]).toMatchObject({ model: 'speech-silent', operation: 'transcription', audio_seconds: 2.5, source: 'counted' })
})

it('GraphQL transcriptions return the same', async () => {
  const query = `mutation T($input: TranscriptionInput!) { createTranscription(input: $input) { text subtitles audioSeconds cost model { id kind } } }`
  const { data, errors } = await caller.graphql(query, {
    input: { model: 'speech', contentBase64: AUDIO.toString('base64'), responseFormat: 'VTT' },
  })
  expect(errors).toBeUndefined()
  expect(data.createTranscription).toMatchObject({
    text: TRANSCRIPT.text,
    audioSeconds: 3,
    cost: '0.0003',
    model: { id: 'speech', kind: 'TRANSCRIPTION' },
  })
  expect(data.createTranscription.subtitles).toMatch(/^WEBVTT\n\n/)
})

const file = new File([AUDIO], 'a.wav')
const model = ['model', 'speech'] as const
it.each<[string, [string, string | Blob][], number, string, string | null]>([
  ['no file', [[...model]], 400, 'missing_required_parameter', 'file'],
  ['no model', [['file', file]], 400, 'missing_required_parameter', 'model'],
  ['a text file', [[...model], ['file', 'sound']], 400, 'invalid_type', 'file'],
  ['an empty file', [[...model], ['file', new File([], 'a.wav')]], 400, 'invalid_request', 'file'],
  [
    'a file one byte too large',
    [[...model], ['file', new File([Buffer.alloc(25 * 1024 * 1024 + 1)], 'a.wav')]],
    413,
    'payload_too_large',
    'file',
  ],
  ['a file that is not audio', [[...model], ['file', new File(['%PDF-1.7 and more of it'], 'a.wav')]], 400, 'unsupported_value', 'file'],
  ['a header without audio', [[...model], ['file', new File(['RIFF....WAVEgarbage garbage'], 'a.wav')]], 400, 'unsupported_value', 'file'],
  [
    'an unknown model',
    [
      ['model', 'other'],
      ['file', file],
    ],
    404,
    'model_not_found',
    'model',
  ],
  [
    'a model of another kind',
    [
      ['model', 'chat'],
      ['file', file],
    ],
    404,
    'model_not_found',
    'model',
  ],
  ['an unknown format', [[...model], ['file', file], ['response_format', 'docx']], 400, 'unsupported_value', 'response_format'],
  ['a temperature that is not a number', [[...model], ['file', file], ['temperature', 'hot']], 400, 'invalid_type', 'temperature'],
  ['a temperature out of range', [[...model], ['file', file], ['temperature', '1e308']], 400, 'integer_above_max_value', 'temperature'],
  ['a language by its full name', [[...model], ['file', file], ['language', 'English']], 400, 'unsupported_value', 'language'],
  ['a long prompt', [[...model], ['file', file], ['prompt', 'a'.repeat(16_385)]], 400, 'string_above_max_length', 'prompt'],
  ['an unknown field', [[...model], ['file', file], ['speed', '2']], 400, 'unknown_parameter', 'speed'],
  ['a duplicate field', [[...model], [...model], ['file', file]], 400, 'invalid_request', 'model'],
  [
    'granularities without their format',
    [[...model], ['file', file], ['timestamp_granularities[]', 'word']],
    400,
    'invalid_request',
    'timestamp_granularities[]',
  ],
  [
    'a stream of subtitles',
    [[...model], ['file', file], ['response_format', 'srt'], ['stream', 'true']],
    400,
    'invalid_request',
    'response_format',
  ],
  ['an unknown strategy', [[...model], ['file', file], ['chunking_strategy', 'evenly']], 400, 'unsupported_value', 'chunking_strategy'],
  [
    'numbers for a strategy without them',
    [[...model], ['file', file], ['chunking_strategy', 'auto'], ['chunking_strategy[threshold]', '0.5']],
    400,
    'invalid_request',
    'chunking_strategy[type]',
  ],
  [
    'numbers without a strategy',
    [[...model], ['file', file], ['chunking_strategy[threshold]', '0.5']],
    400,
    'missing_required_parameter',
    'chunking_strategy[type]',
  ],
  [
    'known speaker names',
    [[...model], ['file', file], ['known_speaker_names[]', 'Ada']],
    400,
    'unknown_parameter',
    'known_speaker_names[]',
  ],
  ['101 fields', Array.from({ length: 101 }, (_, index) => [`f${index}`, '']), 400, 'invalid_request', null],
])('%s is refused, without a hold or an engine call', async (_name, fields, status, code, param) => {
  const [before, calls] = [await spent(), mock.transcriptions]
  const response = await post(fields)
  expect([response.status, response.error]).toMatchObject([status, { code, param, type: 'invalid_request_error' }])
  expect(await spent()).toBe(before)
  expect(mock.transcriptions).toBe(calls)
  expect((await balancedWallet(caller)).held_usd).toBe('0')
})

it.each<[string, string, string, number, string]>([
  ['JSON', '{"model": "speech"}', 'application/json', 400, 'invalid_request'],
  ['a form without a boundary', 'file', 'multipart/form-data', 400, 'invalid_request'],
  [
    'a truncated form',
    '--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nab',
    'multipart/form-data; boundary=x',
    400,
    'invalid_request',
  ],
])('%s is refused', async (_name, body, type, status, code) => {
  const response = await send(body, { 'content-type': type })
  expect([response.status, response.error]).toMatchObject([status, { code }])
})

it('a failing engine, and one without segments for subtitles, cost nothing', async () => {
  const before = await spent()
  expect(
    await post([
      ['model', 'speech-500'],
      ['file', file],
    ]),
  ).toMatchObject({ status: 502, error: { code: 'engine_error' } })
  expect(
    await post([
      ['model', 'speech-segmentless'],
      ['file', file],
      ['response_format', 'srt'],
    ]),
  ).toMatchObject({
    status: 502,
    error: { code: 'engine_error' },
  })
  expect(await spent()).toBe(before)
})

it('a key without the model, an organization with local residency and an empty wallet reach no engine', async () => {
  const operator = createCaller(service, service.key)
  const calls = mock.transcriptions
  const poor = await newOrganization(operator, service, { creditUsd: '0' })
  const local = await newOrganization(operator, service)
  expect((await local.rest('PATCH', '/v1/organization', { residency_policy: 'local_only' })).status).toBe(200)
  await eventually(async () => (await local.openai.models.list()).data.length === 0, PRINCIPAL_MS)
  const narrow = await caller.rest('POST', '/v1/keys', { name: 'narrow', scopes: ['inference'], model_allowlist: ['chat'] })
  for (const [key, status, code] of [
    [narrow.body.key, 404, 'model_not_found'],
    [local.key, 403, 'residency_policy_violation'],
    [poor.key, 429, 'insufficient_quota'],
  ])
    expect(await post([[...model], ['file', file]], { authorization: `Bearer ${key}` })).toMatchObject({ status, error: { code } })
  expect(mock.transcriptions).toBe(calls)
})
