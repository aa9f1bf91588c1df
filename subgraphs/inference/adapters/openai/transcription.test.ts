import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../common/process/clock.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { FakeVendor, respondJson, startStream } from '../../test-support/fake-vendor.ts'
import { createOpenAiEngines } from './engines.ts'

const CALL = { engineModel: 'vendor-model', requestId: 'req_1' }
const AUDIO = { bytes: Buffer.from('sound'), format: 'wav' } as const
const REQUEST = { format: 'json', language: null, prompt: null, temperature: null, granularities: [], include: [], chunking: null } as const
const DELTA = { type: 'transcript.text.delta', delta: 'Hello', logprobs: [{ token: 'Hello' }] }
const DONE = { type: 'transcript.text.done', text: 'Hello', usage: { type: 'tokens', input_tokens: 1 } }
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

let opened: AsyncDisposable[] = []
afterEach(async () => {
  for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]()
  opened = []
})

async function engineFor(respond: (response: ServerResponse) => void) {
  const vendor = await FakeVendor.start(respond)
  const engines = createOpenAiEngines({ name: 'acme', baseUrl: vendor.baseUrl, apiKey: null, clock: systemClock })
  opened.push(vendor, engines)
  const stream = (signal = new AbortController().signal) => engines.transcription.stream(CALL, AUDIO, REQUEST, signal)
  return { vendor, stream }
}

async function readAll(stream: Promise<AsyncIterable<readonly ProtocolObject[]>>) {
  const events: ProtocolObject[] = []
  try {
    for await (const item of await stream) events.push(...item)
    return { events }
  } catch (error) {
    return { events, error }
  }
}

describe('Streamed transcription over HTTP', () => {
  it('yields whole events and ends with the last, even if the vendor leaves the connection open', async () => {
    const { vendor, stream } = await engineFor((response) => {
      startStream(response)
      response.write(event(DELTA) + event(DONE) + event({ type: 'after the end' }))
    })
    expect(await readAll(stream())).toEqual({ events: [DELTA, DONE] })
    const { request } = vendor.received[0]!
    expect([request.url, request.headers.accept]).toEqual(['/v1/audio/transcriptions', 'text/event-stream'])
  })

  it.each([
    ['ends before its last event', event(DELTA)],
    ['has an error among its events', event(DELTA) + event({ type: 'error', error: { message: 'overloaded' } })],
    ['is malformed', `${event(DELTA)}data: {\n\n`],
  ])('that %s fails with engine_error after the events before it', async (_name, text) => {
    const { stream } = await engineFor((response) => {
      startStream(response)
      response.end(text)
    })
    expect(await readAll(stream())).toMatchObject({ events: [DELTA], error: { code: 'engine_error' } })
  })

  it('is refused before the first event by a server that does not stream', async () => {
    const { stream } = await engineFor((response) => respondJson(response, 200, { text: 'Hello' }))
    await expect(stream()).rejects.toMatchObject({ code: 'engine_error' })
  })

  it('is closed at the vendor when its reader disconnects', async () => {
    const { vendor, stream } = await engineFor((response) => {
      startStream(response)
      response.write(event(DELTA))
    })
    const leaving = new AbortController()
    const events = await stream(leaving.signal)
    expect((await events.next()).value).toEqual([DELTA])
    leaving.abort()
    expect((await events.next()).done).toBe(true)
    await vendor.received[0]!.closed
  })
})
