import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { KisError } from '../../../common/errors.ts'
import type { TranscriptionInput } from '../../domain/transcription/transcription-request.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { createTranscription } from './create-transcription.ts'
import { streamTranscription } from './stream-transcription.ts'

/** A minute costs 6,000,000 nano-USD, so a second costs 100,000. */
const SECOND = 100_000n
const createInput = (content = 'wav 2500 ', fields: Partial<TranscriptionInput> = {}) => ({
  model: 'speech',
  contentBase64: Buffer.from(content).toString('base64'),
  ...fields,
})

async function all<Event>(stream: AsyncIterable<Event>): Promise<Event[]> {
  const events = []
  for await (const event of stream) events.push(event)
  return events
}

describe('Transcription', () => {
  it.each([
    ['the seconds in its usage', { usage: { type: 'duration', seconds: 3 }, duration: 2.4 }, 3n * SECOND, 'provider'],
    ['its duration', { duration: 2.6 }, 260_000n, 'provider'],
    ['its duration as a text', { duration: '2.6' }, 260_000n, 'provider'],
    ['the file where the engine reports a shorter duration', { duration: 0.001 }, 250_000n, 'counted'],
    ['the file where usage is in tokens', { usage: { type: 'tokens', input_tokens: 9 } }, 250_000n, 'counted'],
    ['the file where the engine reports nothing', {}, 250_000n, 'counted'],
    ['the file where the report is malformed', { usage: { type: 'duration', seconds: -1 }, duration: Number.NaN }, 250_000n, 'counted'],
    ['the file where the reported duration exceeds what its bytes allow', { duration: 3.6 }, 250_000n, 'counted'],
    ['the file where the report exceeds a day', { duration: 90_000 }, 250_000n, 'counted'],
  ])('is charged by %s', async (_name, fields, charged, source) => {
    const { deps, billing, far } = parts()
    far.transcript = { text: 'Hello', ...fields }
    const { text, cost } = await createTranscription(deps, createRequestContext(), createInput())
    expect([text, cost, billing.only.charged, billing.only.used?.source]).toEqual(['Hello', charged, charged, source])
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
  })

  it.each([
    ['the report, if its bytes allow it', 'ogg 10000', 39.9, 'provider', 110n],
    ['its own duration, if its bytes do not', 'ogg 10000', 80_000, 'counted', 100n],
    ['its estimated duration, if its bytes do not', 'ogg ?', 80_000, 'estimated', 100n],
  ])('of a file with an unread codec is charged %s', async (_name, head, duration, source, tenths) => {
    const { deps, billing, far } = parts()
    far.transcript = { text: 'Hello', duration }
    await createTranscription(deps, createRequestContext(), createInput(`${head} `.padEnd(40_000, 'x')))
    expect(billing.only).toMatchObject({ charged: (tenths * SECOND) / 10n, used: { source } })
  })

  it.each([
    ['its own duration and a second', 'wav 2500 ', 350_000n],
    ['its size at 32 kbit/s and a second, where it states less', `wav 1 ${'x'.repeat(39_994)}`, 11n * SECOND],
    ['its size where it states nothing', `wav ? ${'x'.repeat(39_994)}`, 11n * SECOND],
  ])('holds the price of %s', async (_name, content, held) => {
    const { deps, billing } = parts()
    await createTranscription(deps, createRequestContext(), createInput(content))
    expect(billing.only.amount).toBe(held)
  })

  it.each([
    ['its tokens', { usage: { type: 'tokens', input_tokens: 35, output_tokens: 9 } }, 300_000n, 'provider'],
    ['its duration where the engine reports none', {}, 250_000n, 'counted'],
    [
      'its duration where the tokens of its text are zero',
      { usage: { type: 'tokens', input_tokens: 35, output_tokens: 0 } },
      250_000n,
      'counted',
    ],
    [
      'its duration where the tokens are impossible',
      { usage: { type: 'tokens', input_tokens: -35, output_tokens: 9 } },
      250_000n,
      'counted',
    ],
    ['the longer duration where the engine reports that', { duration: 2.6 }, 260_000n, 'provider'],
    // 64 and 40 tokens of input, 80 of output, and 3.5 s.
    ['at most the hold', { usage: { type: 'tokens', input_tokens: 9_000, output_tokens: 9_000 } }, 1_774_000n, 'provider'],
  ])('by a model priced by token is charged %s', async (_name, fields, charged, source) => {
    const { deps, billing, far } = parts()
    far.transcript = { text: 'Hello', ...fields }
    const { cost } = await createTranscription(deps, createRequestContext(), createInput(undefined, { model: 'speech-tokens' }))
    expect([cost, billing.only.charged, billing.only.used?.source, billing.openHolds]).toEqual([charged, charged, source, 0])
  })

  it('of a file without a stated duration is estimated by its size, and marked so', async () => {
    const { deps, billing } = parts()
    const { response } = await createTranscription(deps, createRequestContext(), createInput(`wav ? ${'x'.repeat(39_994)}`))
    expect(billing.only).toMatchObject({ charged: 10n * SECOND, used: { source: 'estimated' } })
    expect(response).toEqual({ text: 'Hello', usage: { type: 'duration', seconds: 10 } })
  })

  it('requests segments only where they are needed, and returns the whole response', async () => {
    const { deps, far } = parts()
    far.transcript = {
      text: 'a',
      segments: [{ start: 0, end: 3_661.5, text: ' a --> <b>\n\nc' }],
      extra: 1,
      usage: { type: 'duration', seconds: 2 },
    }
    const results = []
    for (const responseFormat of ['json', 'verbose_json', 'srt', 'vtt'] as const)
      results.push(await createTranscription(deps, createRequestContext(), createInput(undefined, { responseFormat })))
    expect(far.transcribed.map(({ format }) => format)).toEqual(['json', 'verbose_json', 'verbose_json', 'verbose_json'])
    expect(results.map(({ subtitles }) => subtitles)).toEqual([
      null,
      null,
      '1\n00:00:00,000 --> 01:01:01,500\na --> <b>\nc\n',
      'WEBVTT\n\n00:00:00.000 --> 01:01:01.500\na --&gt; &lt;b&gt;\nc\n',
    ])
    expect(results.map(({ response }) => response)).toEqual(Array(4).fill(far.transcript))
  })

  it.each([
    ['no text', {}],
    ['no segments', { text: 'a' }],
    ['a segment that ends before it begins', { text: 'a', segments: [{ start: 2, end: 1, text: 'a' }] }],
    ['a malformed segment', { text: 'a', segments: [null] }],
  ])('costs nothing when the engine returns %s', async (_name, transcript) => {
    const { deps, billing, far } = parts()
    far.transcript = transcript
    await expect(
      createTranscription(deps, createRequestContext(), createInput(undefined, { responseFormat: 'srt' })),
    ).rejects.toMatchObject({
      code: 'engine_error',
    })
    expect(billing.only.state).toBe('voided')
  })

  it('costs nothing when the engine fails, and the whole file when the caller disconnects', async () => {
    const { deps, billing, far } = parts()
    far.transcript = new KisError('engine_unavailable', 'down')
    await expect(createTranscription(deps, createRequestContext(), createInput())).rejects.toMatchObject({ code: 'engine_unavailable' })
    expect(billing.only.state).toBe('voided')

    billing.holds.clear()
    far.transcript = 'wait'
    const leaving = new AbortController()
    const response = createTranscription(deps, createRequestContext(somebody, leaving.signal), createInput()).catch((error) => error)
    await eventually(() => far.transcribed.length === 2)
    leaving.abort()
    await response
    expect(billing.only).toMatchObject({ state: 'settled', charged: 250_000n })
    expect(far.ended).toBe(1)
  })

  it.each<[string, Partial<TranscriptionInput>, string, string]>([
    ['an empty model', { model: '' }, 'missing_required_parameter', 'model'],
    ['a model of another kind', { model: 'chat' }, 'model_not_found', 'model'],
    ['no bytes', { contentBase64: '' }, 'invalid_request', 'contentBase64'],
    ['invalid base64', { contentBase64: 'd2F2*' }, 'invalid_request', 'contentBase64'],
    ['base64 of an impossible length', { contentBase64: 'd2F2I' }, 'invalid_request', 'contentBase64'],
    ['a file that is not audio', createInput('text'), 'unsupported_value', 'contentBase64'],
    ['more than 24 hours', createInput('wav 86400001 '), 'invalid_request', 'contentBase64'],
    ['more than 25 MiB', { contentBase64: 'A'.repeat(34_952_536) }, 'payload_too_large', 'contentBase64'],
    ['a temperature above 1', { temperature: 1.1 }, 'invalid_request', 'temperature'],
    ['a language by its full name', { language: 'arabic' }, 'unsupported_value', 'language'],
    ['a threshold above 1', { chunking: { strategy: 'server_vad', threshold: 2 } }, 'invalid_request', 'chunking.threshold'],
    [
      'a pause of an hour',
      { chunking: { strategy: 'server_vad', silenceDurationMs: 3_600_000 } },
      'invalid_request',
      'chunking.silenceDurationMs',
    ],
    ['numbers for the strategy auto', { chunking: { strategy: 'auto', threshold: 0.5 } }, 'invalid_request', 'chunking.strategy'],
    ['words without verbose_json', { timestampGranularities: ['word'] }, 'invalid_request', 'timestampGranularities'],
    ['logprobs with subtitles', { include: ['logprobs'], responseFormat: 'srt' }, 'invalid_request', 'include'],
  ])('is refused for %s, before the hold', async (_name, fields, code, param) => {
    const { deps, billing, far } = parts()
    await expect(createTranscription(deps, createRequestContext(), createInput(undefined, fields))).rejects.toMatchObject({ code, param })
    expect([billing.writes, far.transcribed]).toEqual([[], []])
  })

  it('is refused outside the allowlist, the residency policy and the wallet', async () => {
    const { deps, far } = parts({ balance: 1n })
    const refused = (caller: object) => createTranscription(deps, createRequestContext({ ...somebody, ...caller }), createInput())
    await expect(refused({ modelAllowlist: ['chat'] })).rejects.toMatchObject({ code: 'model_not_found' })
    await expect(refused({ residencyPolicy: 'local_only' })).rejects.toMatchObject({ code: 'residency_policy_violation' })
    await expect(refused({ scopes: ['knowledge:read'] })).rejects.toMatchObject({ code: 'permission_denied' })
    await expect(refused({})).rejects.toMatchObject({ code: 'insufficient_quota' })
    expect(far.transcribed).toEqual([])
  })
})

describe('Streamed transcription', () => {
  const live = (fields: Partial<TranscriptionInput> = {}) => createInput(undefined, { model: 'speech-live', ...fields })
  const delta = (text: string) => ({ type: 'transcript.text.delta', delta: text })
  const done = (fields: object = {}) => ({ type: 'transcript.text.done', text: 'Hello there', ...fields })

  it('yields what arrived together, and finally `done` alone with its cost, after the charge', async () => {
    const { deps, billing, far } = parts()
    far.transcriptSteps = [
      [delta('Hel'), delta('lo')],
      [delta(' there'), done()],
    ]
    const events = await all(streamTranscription(deps, createRequestContext(), live()))
    const usage = { type: 'duration', seconds: 3 }
    expect(events.map(({ events }) => events)).toEqual([[delta('Hel'), delta('lo')], [delta(' there')], [done({ usage })]])
    expect(events.map(({ cost, audioMilliseconds }) => [cost, audioMilliseconds])).toEqual([
      [null, null],
      [null, null],
      [250_000n, 2_500],
    ])
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
    expect(far.transcribed).toMatchObject([{ format: 'json' }])
  })

  it('reports the remaining rate limit of the key with its first event only', async () => {
    const { deps, far } = parts()
    far.transcriptSteps = [[delta('Hello there')], [done()]]
    const limited = createRequestContext({ ...somebody, requestsPerMinute: 10 })
    const events = await all(streamTranscription(deps, limited, live()))
    expect(events.map(({ rateLimits }) => rateLimits?.requests?.remaining)).toEqual([9, undefined])
  })

  it("builds the protocol's events from the whole response where the model does not stream", async () => {
    const { deps, far } = parts()
    far.transcript = { text: 'Hello', logprobs: [1], usage: { type: 'duration', seconds: 2 } }
    const events = await all(streamTranscription(deps, createRequestContext(), createInput()))
    expect(events.flatMap(({ events }) => events)).toEqual([delta('Hello'), { type: 'transcript.text.done', ...far.transcript }])
    far.transcript = { text: 'Hello', segments: [{ id: 'a', speaker: 'A', text: 'Hello' }] }
    const received = await all(
      streamTranscription(deps, createRequestContext(), createInput(undefined, { responseFormat: 'diarized_json' })),
    )
    expect(received.flatMap(({ events }) => events)).toMatchObject([
      { type: 'transcript.text.segment', speaker: 'A' },
      { type: 'transcript.text.done', text: 'Hello' },
    ])
  })

  it('that is never read calls no engine', async () => {
    const { deps, billing, far } = parts()
    await streamTranscription(deps, createRequestContext(), live()).return?.()
    expect([billing.writes, far.transcribed]).toEqual([[], []])
  })

  it.each([
    ['before its first event', 'wait' as const, []],
    ['in the middle', { text: '' }, [[delta('Hello')], 'wait' as const]],
    ['while an event waits to be read', { text: '' }, [[delta('Hello')], [delta(' there')], 'wait' as const]],
  ])('is cancelled and charged for the file when its caller disconnects %s', async (_name, transcript, steps) => {
    const { deps, billing, far } = parts()
    far.transcript = transcript
    far.transcriptSteps = steps
    const leaving = new AbortController()
    const events = streamTranscription(deps, createRequestContext(somebody, leaving.signal), live())
    const first = events.next()
    await (steps.length > 0 ? first : eventually(() => far.transcribed.length === 1))
    leaving.abort()
    expect(await events.next()).toEqual({ done: true, value: undefined })
    await eventually(() => billing.only.state === 'settled')
    expect(billing.only.charged).toBe(250_000n)
    expect(far.ended).toBe(1)
    expect(deps.load.calls).toBe(0)
  })

  it.each([
    ['fails', [[delta('Hello')], new KisError('engine_unavailable', 'down')], 'engine_unavailable'],
    ['ends without its last event', [[delta('Hello')]], 'engine_error'],
    ['has a last event without a text', [[delta('Hello')], [{ type: 'transcript.text.done' }]], 'engine_error'],
  ])('costs nothing when the engine %s, after the earlier events', async (_name, steps, code) => {
    const { deps, billing, far } = parts()
    far.transcriptSteps = steps
    const events = streamTranscription(deps, createRequestContext(), live())
    expect((await events.next()).value?.events).toEqual([delta('Hello')])
    await expect(events.next()).rejects.toMatchObject({ code })
    expect(await events.next()).toEqual({ done: true, value: undefined })
    expect(billing.only.state).toBe('voided')
  })

  it.each(['srt', 'vtt', 'verbose_json'] as const)('is refused as %s, before the hold', async (responseFormat) => {
    const { deps, billing } = parts()
    const refused = streamTranscription(deps, createRequestContext(), live({ responseFormat })).next()
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request', param: 'responseFormat' })
    expect(billing.writes).toEqual([])
  })
})
