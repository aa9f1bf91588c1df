import { expect, it } from 'vitest'
import { openTestIndex, startWork } from '../../../../test/support/data/knowledge-library.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import {
  base64,
  createContext,
  depsOn,
  FakeInference,
  Life,
  MemoryBlobStore,
  plainParser,
  principal,
} from '../../../../test/support/knowledge.ts'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { MAX_AUDIO_BYTES } from '../../domain/media-types.ts'
import type { InnerFile } from '../../ports/document-parser.ts'
import type { Deps } from '../deps.ts'
import { createCollection, updateCollection } from '../documents/collections.ts'
import { createDocument, deleteDocument, getDocument, retryDocument } from '../documents/documents.ts'
import { listChunks } from '../documents/list-chunks.ts'
import { readText } from '../documents/read-text.ts'
import { uploadFile } from '../files/files.ts'

const context = createContext()
const index = await openTestIndex()

const SPOKEN = [
  { start: 0, end: 4.2, text: ' Welcome to the harbour.' },
  { start: 4.2, end: 61.3, text: ' It opens\nat six.' },
  { start: 3_661, end: 3_665.5, text: ' تُغلق البوابة ليلاً.' },
]
const TEXT = 'Welcome to the harbour.\nIt opens at six.\nتُغلق البوابة ليلاً.'

/** Treats every file whose name ends in `.wav` as audio. */
const parser = {
  ...plainParser,
  sniff: (_bytes: Uint8Array, name: string) => (name.endsWith('.wav') ? 'audio/wav' : 'text/plain'),
}

function newWorld(inner: readonly InnerFile[] = []) {
  const inference = new FakeInference()
  inference.spoken = SPOKEN
  const world = {
    documents: new MemoryDocumentStore(),
    blobs: new MemoryBlobStore(),
    index,
    inference,
    clock: systemClock,
    parser: {
      ...parser,
      async parse(...args: Parameters<typeof parser.parse>) {
        return { ...(await parser.parse(...args)), hasFiles: inner.length > 0 }
      },
      async *unpack() {
        yield* inner
      },
    },
  }
  // The port that a life sees is not iterable, so use the original parser.
  return { ...world, inference, deps: { ...depsOn(world), parser: world.parser } }
}

let names = 0
async function attach(deps: Deps, { model = 'speech' as string | null, own = null as string | null, name = 'a.wav' } = {}) {
  const code = deps.ids('col')
  const collection = await createCollection(deps, context, { code, name: 'C', embeddingModel: 'embed', transcriptionModel: model })
  const file = await uploadFile(deps, context, { name, contentBase64: base64(`sound ${names++}`) })
  const input = { collectionId: collection._id, fileId: file._id, transcriptionModel: own }
  const { document } = await createDocument(deps, context, input)
  return { id: document._id, collectionId: collection._id }
}

const readDocument = (deps: Deps, id: string) => getDocument(deps, principal.organizationId, id)
async function settled(deps: Deps, id: string) {
  await eventually(async () => ['ready', 'failed'].includes((await readDocument(deps, id)).status))
  return readDocument(deps, id)
}

it('creates a document from a transcription, whose chunks have its times', async () => {
  const { deps, inference } = newWorld()
  const { id } = await attach(deps)
  const stages: unknown[] = []
  inference.transcribe = async (...args) => {
    const { stage, progress, job } = await readDocument(deps, id)
    stages.push([stage, progress, job!.slowOrganizationId])
    return FakeInference.prototype.transcribe.apply(inference, args)
  }
  await using _process = startWork(deps)
  const document = await settled(deps, id)
  expect(document).toMatchObject({ status: 'ready', attempts: 1, pageCount: null, warnings: [] })
  expect(stages).toEqual([['transcribing', { done: 0, total: 1 }, 'org_1']])
  expect(await readText(deps, document, { offset: 0, length: 1_000 })).toMatchObject({ text: TEXT, nextOffset: null, pages: [] })
  const { edges } = await listChunks(deps, document, { first: 10 })
  expect(edges.map(({ node }) => [node.text, node.headingPath])).toEqual([[TEXT, ['00:00:00–01:01:06']]])
})

it('refuses audio without a configured speech model, or above its size limit, with the remedy', async () => {
  const { deps } = newWorld()
  await expect(attach(deps, { model: null })).rejects.toMatchObject({
    code: 'unsupported_file_type',
    param: 'input.fileId',
    message: expect.stringContaining('Set `transcription_model`'),
  })
  const collection = await createCollection(deps, context, { code: 'large', name: 'C', embeddingModel: 'embed' })
  const file = await uploadFile(deps, context, { name: 'large.wav', contentBase64: base64('large') })
  await deps.store.files.findOneAndUpdate({ _id: file._id }, { $set: { sizeBytes: MAX_AUDIO_BYTES + 1 } })
  const input = { collectionId: collection._id, fileId: file._id, transcriptionModel: 'speech' }
  await expect(createDocument(deps, context, input)).rejects.toMatchObject({ code: 'payload_too_large', param: 'input.fileId' })
})

it('uses the model that the document names, and checks each named model', async () => {
  const { deps, inference } = newWorld()
  const { id, collectionId } = await attach(deps, { model: null, own: 'speech-large' })
  await using _process = startWork(deps)
  expect(await settled(deps, id)).toMatchObject({ status: 'ready', transcriptionModel: 'speech-large' })
  expect([...inference.steps.keys()]).toEqual([expect.stringMatching(/^doc_\w+\/file_\w+\/speech-large$/)])
  const unknown = { code: 'model_not_found', param: 'input.transcriptionModel' }
  await expect(attach(deps, { own: 'chat' })).rejects.toMatchObject({ code: 'model_not_found' })
  const update = updateCollection(deps, context, { id: collectionId, transcriptionModel: 'chat' })
  await expect(update).rejects.toMatchObject({ code: unknown.code })
  const changed = await updateCollection(deps, context, { id: collectionId, transcriptionModel: 'speech' })
  expect(changed.transcriptionModel).toBe('speech')
  expect((await updateCollection(deps, context, { id: collectionId, transcriptionModel: null })).transcriptionModel).toBeNull()
})

it.each([
  ['nothing is said', [], 'no_text', /heard no speech/],
  ['the audio is corrupted', new KisError('unsupported_value', 'The file is not sound.'), 'unsupported_type', /not sound/],
  ['the audio is too long', new KisError('payload_too_large', 'Split it.'), 'limit_exceeded', /Split/],
  ['the wallet is empty', new KisError('insufficient_quota', 'Top up.'), 'insufficient_quota', /Top up/],
  ['the policy forbids the model', new KisError('residency_policy_violation', 'No.'), 'residency_policy_violation', /No/],
  ['the engine refuses it', new KisError('invalid_request', 'The engine cannot decode it.'), 'transcription_failed', /decode/],
  [
    'the engine is unavailable',
    new KisError('engine_unavailable', 'It is away.'),
    'transcription_failed',
    /away\. Retry the document later/,
  ],
])('fails with a specific error when %s, and can be retried', async (_why, spoken, code, message) => {
  const { deps, inference } = newWorld()
  inference.spoken = spoken
  const { id } = await attach(deps)
  await using _process = startWork(deps)
  const failed = await settled(deps, id)
  expect(failed.error).toEqual({ code, message: expect.stringMatching(message) })
  expect([...(deps.blobs as MemoryBlobStore).keys.keys()].filter((key) => key.includes(id))).toEqual([])
  inference.spoken = SPOKEN
  inference.steps.clear()
  await retryDocument(deps, context, id)
  expect((await settled(deps, id)).status).toBe('ready')
})

it('waits for another process that transcribes it, without counting a failure', async () => {
  const { deps, inference } = newWorld()
  let transcriptions = 0
  inference.transcribe = async (...args) => {
    if (++transcriptions <= 10) throw new KisError('idempotency_conflict', 'It is in progress.', { shouldRetry: true })
    return FakeInference.prototype.transcribe.apply(inference, args)
  }
  const { id } = await attach(deps)
  await using _process = startWork(deps)
  expect((await settled(deps, id)).status).toBe('ready')
}, 20_000)

it('stores nothing of a document that is deleted during transcription', async () => {
  const { deps, inference } = newWorld()
  const { id } = await attach(deps)
  const { promise, resolve } = Promise.withResolvers<void>()
  inference.transcribe = async (...args) => {
    await deleteDocument(deps, context, id)
    resolve()
    return FakeInference.prototype.transcribe.apply(inference, args)
  }
  await using _process = startWork(deps)
  await promise
  await eventually(async () => (await deps.store.documents.findOne({ _id: id })) === null)
  await eventually(() => [...(deps.blobs as MemoryBlobStore).keys.keys()].every((key) => !key.includes(id)))
})

it('transcribes audio inside an archive if the collection names a model', async () => {
  const inner = [{ name: 'call.wav', bytes: Buffer.from('call') }]
  for (const [model, ready] of [
    ['speech', 2],
    [null, 1],
  ] as const) {
    const { deps } = newWorld(inner)
    const { id, collectionId } = await attach(deps, { model, name: 'mail.txt' })
    await using _process = startWork(deps)
    const whole = await settled(deps, id)
    await eventually(async () => (await deps.store.documents.countDocuments({ collectionId, status: 'ready' })) === ready)
    expect(whole.warnings.length).toBe(2 - ready)
  }
})

it('calls a model once, at whichever port call a process dies before the transcript is stored', async () => {
  let isOver = false
  for (let diesAt = 1; !isOver; diesAt++) {
    for (const effect of ['failed', 'lost answer'] as const) {
      const world = newWorld()
      const { id } = await attach(world.deps)
      const life = new Life(diesAt, effect)
      const dying = startWork(depsOn(world, life), true)
      await eventually(() => life.isDead)
      isOver = effect === 'failed' && [...world.blobs.keys.keys()].some((key) => key.includes('_speech_'))
      await dying[Symbol.asyncDispose]().catch(() => undefined)
      await using _next = startWork(world.deps, true)
      expect((await settled(world.deps, id)).status, `${effect} at ${diesAt}`).toBe('ready')
      expect([world.inference.transcribed, world.inference.steps.size]).toEqual([1, 1])
      if (isOver) break
    }
  }
}, 60_000)
