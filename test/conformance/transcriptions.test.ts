import { createReadStream } from 'node:fs'
import { BadRequestError, toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDocument, balancedWallet, type Caller, createCaller, nano, newCollection, newOrganization } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startEmbedded } from '../support/processes/service.ts'

const url = process.env.KIS_TEST_SPEECH_URL
const suite = url ? describe : describe.skip
const why = url ? '' : ': skipped because KIS_TEST_SPEECH_URL names no engine (test/engines/README.md)'

const catalog = `
engines:
  whisper: { kind: openai, base_url: "${url}", badge: local }
  embedded: { kind: embedded, badge: local }
models:
  - { id: e5-small-ar-en, engine: embedded, kind: embedding, dimensions: 384, context_window: 512, query_prefix: "query: ", passage_prefix: "passage: ", cosine_spread: 0.03, price: { input: "0" } }
  - { id: whole, engine: whisper, engine_model: whisper-tiny-en, kind: transcription, price: { audio: "0.006" } }
  - { id: live, engine: whisper, engine_model: whisper-tiny-en, kind: transcription, supports: [streaming], price: { audio: "0.006" } }
`
/** USD 0.006 a minute are 100,000 nano-USD a second. */
const NANO_OF_SECOND = 100_000n
const SPEECH = 'The meeting begins on Monday morning. Please send the receipts to the office.'
/** The engine hears 30 seconds at a time: of a longer file it gives events before it has heard the rest. */
const LONG_SPEECH = Array(10).fill(SPEECH).join(' ')
const HEARD = /Monday morning.*receipts? to the office/s
/** A call takes two seconds or so of both cores, which other suites have too. */
const TIMEOUT_MS = 120_000
const fixture = (name: string) => new URL(`../../subgraphs/inference/adapters/music-metadata/__fixtures__/${name}`, import.meta.url)

/** The engine's own voice. */
async function spoken(input: string): Promise<Buffer<ArrayBuffer>> {
  const response = await fetch(`${url}/audio/speech`, { method: 'POST', body: JSON.stringify({ input }) })
  return Buffer.from(await response.arrayBuffer())
}

suite(`Transcriptions with a real engine of the protocol${why}`, { timeout: TIMEOUT_MS }, () => {
  let service: Service
  let caller: Caller
  let speech: Buffer<ArrayBuffer>
  beforeAll(async () => {
    service = await startEmbedded({ catalog })
    caller = await newOrganization(createCaller(service, service.key), service)
    speech = await spoken(SPEECH)
  })
  afterAll(() => service?.close())
  const createInput = async (model = 'whole', content = speech) => ({ model, file: await toFile(content, 'speech.wav') })
  const spent = async () => nano('10') - nano((await balancedWallet(caller)).balance_usd)
  const lastUsage = async () => (await caller.rest('GET', '/v1/usage?limit=1')).body.data[0]

  it('return the spoken text in every format, and charge the seconds that the engine reports', async () => {
    const { transcriptions } = caller.openai.audio
    const before = await spent()
    const json = await transcriptions.create({ ...(await createInput()), language: 'en', prompt: 'Office hours.', temperature: 0 })
    expect(json.text).toMatch(HEARD)
    const usage = json.usage as { readonly type: string; readonly seconds: number }
    expect(usage).toEqual({ type: 'duration', seconds: expect.any(Number) })
    expect(await lastUsage()).toMatchObject({ operation: 'transcription', audio_seconds: usage.seconds, source: 'provider' })

    expect(await transcriptions.create({ ...(await createInput()), response_format: 'text' })).toMatch(HEARD)
    const verbose = await transcriptions.create({
      ...(await createInput()),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    expect(verbose.text).toMatch(HEARD)
    expect(Math.ceil(verbose.duration)).toBe(usage.seconds)
    expect(verbose.segments!.map(({ text }) => text).join('')).toMatch(HEARD)
    expect(verbose.words!.map(({ word }) => word)).toEqual(expect.arrayContaining(['Monday', 'receipts']))

    const srt = await transcriptions.create({ ...(await createInput()), response_format: 'srt' })
    expect(srt).toMatch(/^1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\n/)
    expect(srt).toMatch(HEARD)
    const vtt = await transcriptions.create({ ...(await createInput()), response_format: 'vtt' })
    expect(vtt).toMatch(/^WEBVTT\n\n00:00:\d\d\.\d{3} --> 00:00:\d\d\.\d{3}\n/)
    expect(vtt).toMatch(HEARD)
    expect((await spent()) - before).toBe(5n * BigInt(usage.seconds) * NANO_OF_SECOND)
  })

  it('are streamed segment by segment, with the same charge', async () => {
    const before = await spent()
    const deltas: string[] = []
    let done: { readonly text: string; readonly usage?: unknown } | undefined
    for await (const event of await caller.openai.audio.transcriptions.create({ ...(await createInput('live')), stream: true })) {
      expect(done).toBeUndefined()
      if (event.type === 'transcript.text.delta') deltas.push(event.delta)
      if (event.type === 'transcript.text.done') done = event
    }
    expect(done!.text).toMatch(HEARD)
    expect(deltas.join('')).toBe(done!.text)
    expect((await spent()) - before).toBe(BigInt((done!.usage as { seconds: number }).seconds) * NANO_OF_SECOND)
  })

  it('stop when their reader disconnects, who pays for the whole file', async () => {
    const before = await spent()
    const audio = await spoken(LONG_SPEECH)
    const leaving = new AbortController()
    const request = { ...(await createInput('live', audio)), stream: true } as const
    const stream = await caller.openai.audio.transcriptions.create(request, { signal: leaving.signal })
    expect((await stream[Symbol.asyncIterator]().next()).value).toMatchObject({ type: 'transcript.text.delta' })
    leaving.abort()
    await eventually(async () => (await caller.rest('GET', '/v1/wallet')).body.held_usd === '0')
    const { audio_seconds: seconds, source } = await lastUsage()
    expect(source).toBe('counted')
    expect(seconds).toBeGreaterThan(30)
    expect((await spent()) - before).toBe(BigInt(Math.round(seconds * 1_000)) * (NANO_OF_SECOND / 1_000n))
  })

  it('create a document from a file, which is found by its spoken text, with its times', async () => {
    const collection = await newCollection(caller)
    await caller.rest('PATCH', `/v1/collections/${collection.id}`, { transcription_model: 'whole' })
    const before = await spent()
    const document = await addDocument(caller, collection.id, 'meeting.wav', await spoken(LONG_SPEECH))
    expect(document).toMatchObject({ status: 'ready', language: 'en' })
    const { body: usage } = await caller.rest('GET', '/v1/usage?limit=10')
    const { audio_seconds: seconds } = usage.data.find(({ operation }: { operation: string }) => operation === 'transcription')
    expect((await spent()) - before).toBe(BigInt(Math.round(seconds * 1_000)) * (NANO_OF_SECOND / 1_000n))
    const path = `/v1/collections/${collection.id}`
    const { body: chunks } = await caller.rest('GET', `${path}/documents/${document.id}/chunks`)
    const times = chunks.data.map(({ heading_path }: { heading_path: string[] }) => heading_path.at(-1))
    expect(times[0]).toMatch(/^00:00:0\d–00:0\d:\d\d$/)
    const { body: found } = await caller.rest('POST', `${path}/search`, { query: 'Where do the receipts go?' })
    expect(found.data[0].text).toMatch(HEARD)
  })

  it.each(['tone.flac', 'tone.m4a', 'tone.webm'])('accept %s, like the engine', async (name) => {
    const { text } = await caller.openai.audio.transcriptions.create({ model: 'whole', file: createReadStream(fixture(name)) })
    expect(text).toEqual(expect.any(String))
    expect((await lastUsage()).audio_seconds).toBeGreaterThan(0)
  })

  it('are refused with the error of the engine if it does not support the request, and cost nothing', async () => {
    const before = await spent()
    const refused = caller.openai.audio.transcriptions.create({ ...(await createInput()), response_format: 'diarized_json' })
    const error = await refused.then(
      () => undefined,
      (thrown) => thrown,
    )
    expect(error).toBeInstanceOf(BadRequestError)
    expect(error).toMatchObject({ param: 'response_format', message: expect.stringContaining('diarized_json') })
    expect(await spent()).toBe(before)
  })
})
