import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  addDocument,
  balancedWallet,
  type Caller,
  createCaller,
  type Json,
  nano,
  newCollection,
  newOrganization,
  settled,
} from '../../support/client.ts'
import { wav } from '../../support/data/audio.ts'
import { type MockEngine, startMockEngine } from '../../support/engines/mock-engine.ts'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

const createCatalog = (url: string) => `
engines:
  mock: { kind: openai, base_url: "${url}", api_key: "sk-mock", badge: cloud }
models:
  - { id: embed, engine: mock, kind: embedding, dimensions: 8, context_window: 512, price: { input: "0" } }
${['speech', 'speech-segmentless', 'speech-gate'].map((id) => `  - { id: ${id}, engine: mock, kind: transcription, price: { audio: "0.006" } }`).join('\n')}
`
/** 3 seconds, as the mock reports, at USD 0.006 a minute. */
const COST = 300_000n
const TEXT = 'Hello from the mock.\nمرحبا'

const folder = mkdtempSync(join(tmpdir(), 'kis-spoken-'))
let mock: MockEngine
let service: Service
let caller: Caller & { readonly organizationId: string }
const start = async () => {
  service = await startEmbedded({ folder, catalog: createCatalog(mock.url) })
}

beforeAll(async () => {
  mock = await startMockEngine()
  await start()
  caller = await newOrganization(createCaller(service, service.key), service)
})
afterAll(async () => {
  await service?.close()
  await mock?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const spent = async () => nano('10') - nano((await balancedWallet(caller)).balance_usd)
async function upload(content: Uint8Array, name = 'meeting.wav'): Promise<string> {
  const input = { file_name: name, content_base64: Buffer.from(content).toString('base64') }
  return (await caller.rest('POST', '/v1/files', input)).body.message.id
}
/** The sound of this test alone: the same bytes would be the same document. A file of less than 2 s cannot be one of 3. */
const createAudio = (seconds: number) => Buffer.from(wav(seconds))

it('are found by their spoken text, with its times, in every way of reading documents', async () => {
  const collection = await newCollection(caller, 'embed')
  const path = `/v1/collections/${collection.id}`
  expect(collection.transcription_model).toBeNull()
  const file_id = await upload(createAudio(2.5))
  const refused = await caller.rest('POST', `${path}/documents`, { file_id })
  expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([415, 'unsupported_file_type', 'file_id'])
  expect(refused.body.error.message).toContain('Set `transcription_model`')
  const wrong = await caller.rest('PATCH', path, { transcription_model: 'embed' })
  expect([wrong.status, wrong.body.error.code, wrong.body.error.param]).toEqual([404, 'model_not_found', 'transcription_model'])
  expect((await caller.rest('PATCH', path, { transcription_model: 'speech' })).body.transcription_model).toBe('speech')

  const attached = await caller.rest('POST', `${path}/documents`, { file_id })
  const document = await settled(caller, collection.id, attached.body.id)
  expect(document).toMatchObject({ status: 'ready', page_count: null, chunk_count: 1, transcription_model: null, warnings: [] })
  expect(await spent()).toBe(COST)
  const { body: usage } = await caller.rest('GET', '/v1/usage?limit=10')
  expect(usage.data.filter((record: Json) => record.operation === 'transcription')).toEqual([
    expect.objectContaining({ model: 'speech', audio_seconds: 3 }),
  ])

  const { body: text } = await caller.rest('GET', `${path}/documents/${document.id}/text`)
  expect(text.text).toBe(TEXT)
  const { body: chunks } = await caller.rest('GET', `${path}/documents/${document.id}/chunks`)
  expect(chunks.data.map((chunk: Json) => chunk.heading_path)).toEqual([['00:00:00–00:00:03']])
  const { body: found } = await caller.rest('POST', `${path}/search`, {
    query: 'hello',
    mode: 'lexical',
    filter: { media_type: 'audio/wav' },
  })
  expect(found.data).toEqual([expect.objectContaining({ text: TEXT, heading_path: ['00:00:00–00:00:03'], document_id: document.id })])
  const query = `{ document(id: "${document.id}") { status transcriptionModel { id } chunks { edges { node { headingPath } } }
    collection { transcriptionModel { id } } } }`
  expect((await caller.graphql(query)).data.document).toEqual({
    status: 'READY',
    transcriptionModel: null,
    chunks: { edges: [{ node: { headingPath: ['00:00:00–00:00:03'] } }] },
    collection: { transcriptionModel: { id: 'speech' } },
  })
})

it('use their own model, alone or in bulk, and fail with a specific error if it returns no times', async () => {
  const collection = await newCollection(caller, 'embed')
  const before = await spent()
  const documents = [
    { file_id: await upload(createAudio(2.1)), transcription_model: 'speech' },
    { file_id: await upload(createAudio(2.2)), transcription_model: 'speech-segmentless' },
    { file_id: await upload(createAudio(2.3)) },
  ]
  const { body } = await caller.rest('POST', `/v1/collections/${collection.id}/documents/attach`, { documents })
  expect(body.data.map(({ error }: Json) => error?.code ?? null)).toEqual([null, null, 'unsupported_file_type'])
  const [first, second] = await Promise.all(body.data.slice(0, 2).map(({ document }: Json) => settled(caller, collection.id, document.id)))
  expect(first).toMatchObject({ status: 'ready', transcription_model: 'speech' })
  expect(second.error).toMatchObject({ code: 'transcription_failed', message: expect.stringContaining('returns no timestamps') })
  expect((await spent()) - before).toBe(COST)
})

it('without audible content fail with a specific error, and cost nothing', async () => {
  const collection = await newCollection(caller, 'embed')
  await caller.rest('PATCH', `/v1/collections/${collection.id}`, { transcription_model: 'speech' })
  const before = [await spent(), mock.transcriptions]
  const broken = await addDocument(caller, collection.id, 'a.flac', Buffer.from(`fLaC${'x'.repeat(1_000)}`))
  expect(broken.error.code).toBe('unsupported_type')
  expect([await spent(), mock.transcriptions]).toEqual(before)
})

it('are paid once when the service is killed during transcription', async () => {
  const collection = await newCollection(caller, 'embed')
  await caller.rest('PATCH', `/v1/collections/${collection.id}`, { transcription_model: 'speech-gate' })
  const before = await spent()
  const heard = mock.transcriptions
  const file_id = await upload(createAudio(2.4))
  const { body } = await caller.rest('POST', `/v1/collections/${collection.id}/documents`, { file_id })
  await eventually(() => mock.transcriptions === heard + 1)
  expect((await caller.rest('GET', `/v1/collections/${collection.id}/documents/${body.id}`)).body).toMatchObject({
    status: 'processing',
    stage: 'transcribing',
    progress: { done: 0, total: 1 },
  })
  const { key } = caller
  await service.processes.get('all')!.end('SIGKILL')
  mock.openGate()
  await start()
  caller = { ...createCaller(service, key), organizationId: caller.organizationId }
  expect((await settled(caller, collection.id, body.id)).status).toBe('ready')
  expect((await spent()) - before).toBe(COST)
}, 120_000)
