import { expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import { KisError } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { FakeBilling } from '../../test-support/fake-billing.ts'
import { Life, StoreOfLife } from '../../test-support/life.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { describeTranscriptionModel, transcribeDocument } from './transcribe-document.ts'

const SEGMENTS = [
  { start: 0, end: 1.5, text: ' Welcome.' },
  { start: 1.5, end: 2.5, text: ' The harbour opens at six.' },
]
/** The charge for 2.5 s at USD 0.006 per minute. */
const COST = 250_000n
/** Longer than the lease of a call. */
const LEASE_ENDS_MS = 31_000

const audioInput = (content = 'wav 2500 ', modelId = 'speech') => ({
  modelId,
  contentBase64: Buffer.from(content).toString('base64'),
  step: `doc_1/file_1/${modelId}`,
})

it('returns the segments that have words, and is paid by a key without the scope for models', async () => {
  const { deps, billing, far } = parts()
  far.transcript = { text: 'a', segments: [...SEGMENTS, { start: 2.5, end: 2.5, text: ' ' }] }
  const context = createRequestContext({ ...somebody, scopes: ['knowledge:write'] })
  expect(await transcribeDocument(deps, context, audioInput())).toEqual(SEGMENTS)
  expect(billing.only.charged).toBe(COST)
  expect(far.transcribed.map(({ format }) => format)).toEqual(['verbose_json'])
})

it('charges a step once, however often it is repeated', async () => {
  const { deps, billing, far } = parts()
  far.transcript = { text: 'a', segments: SEGMENTS }
  const first = await transcribeDocument(deps, createRequestContext(), audioInput())
  expect(await transcribeDocument(deps, createRequestContext(), audioInput())).toEqual(first)
  expect([far.transcribed.length, billing.holds.size]).toEqual([1, 1])
})

it('is charged if the document is deleted meanwhile', async () => {
  const { deps, billing, far } = parts()
  const leaving = new AbortController()
  const { transcribe } = far.transcription
  far.transcript = { text: 'a', segments: SEGMENTS }
  far.transcription.transcribe = async (call, file, request, signal) => {
    leaving.abort()
    signal.throwIfAborted()
    return transcribe(call, file, request, signal)
  }
  await transcribeDocument(deps, createRequestContext(somebody, leaving.signal), audioInput())
  expect(billing.only.charged).toBe(COST)
})

it.each([
  ['the file is not audio', 'text', {}, { code: 'unsupported_value' }],
  ['it lasts longer than 4 hours', `wav ${4 * 3_600_000 + 1} `, {}, { code: 'payload_too_large', shouldRetry: false }],
  ['the model returns no times', undefined, { text: 'a' }, { code: 'engine_error', shouldRetry: false }],
  [
    'the model returns an impossible time',
    undefined,
    { text: 'a', segments: [{ start: 0, end: 1e9, text: 'a' }] },
    { code: 'engine_error' },
  ],
])('costs nothing if %s', async (_why, content, transcript, error) => {
  const { deps, billing, far } = parts()
  far.transcript = transcript
  await expect(transcribeDocument(deps, createRequestContext(), audioInput(content))).rejects.toMatchObject(error)
  expect([...billing.holds.values()].map(({ charged }) => charged).filter(Boolean)).toEqual([])
  expect(billing.openHolds).toBe(0)
})

it('is charged if the model returns more than a document accepts', async () => {
  const { deps, billing, far } = parts()
  far.transcript = { text: 'a', segments: [{ start: 0, end: 1, text: 'a'.repeat(600_000) }] }
  await expect(transcribeDocument(deps, createRequestContext(), audioInput())).rejects.toMatchObject({
    code: 'engine_error',
    shouldRetry: false,
  })
  expect(billing.only.charged).toBe(250_000n)
})

it('may be retried after a failure of the engine, which costs nothing', async () => {
  const { deps, billing, far } = parts()
  far.transcript = new KisError('engine_unavailable', 'down')
  await expect(transcribeDocument(deps, createRequestContext(), audioInput())).rejects.toMatchObject({
    code: 'engine_unavailable',
    shouldRetry: true,
  })
  expect([billing.only.charged, billing.openHolds]).toEqual([0n, 0])
  far.transcript = { text: 'a', segments: SEGMENTS }
  expect(await transcribeDocument(deps, createRequestContext(), audioInput())).toEqual(SEGMENTS)
})

it('applies the allowlist, the residency policy and the kind of the model', async () => {
  const { deps, far } = parts()
  const local = createRequestContext({ ...somebody, residencyPolicy: 'local_only' })
  const others = createRequestContext({ ...somebody, modelAllowlist: ['chat'] })
  for (const [context, model, code] of [
    [local, 'speech', 'residency_policy_violation'],
    [others, 'speech', 'model_not_found'],
    [createRequestContext(), 'chat', 'model_not_found'],
  ] as const) {
    await expect(transcribeDocument(deps, context, audioInput(undefined, model))).rejects.toMatchObject({ code })
    expect(() => describeTranscriptionModel(deps, context, model)).toThrow(expect.objectContaining({ code }))
  }
  expect(describeTranscriptionModel(deps, createRequestContext(), 'speech')).toEqual({ id: 'speech' })
  expect(far.transcribed).toEqual([])
})

it.each([
  ['the next process on its data directory', true],
  ['another process after its lease expires', false],
])('is paid once when its process is killed at any of its writes, and %s repeats it', async (_who, isExclusive) => {
  let length = Number.POSITIVE_INFINITY
  for (let last = 1; last <= length; last++) {
    const store = new MemoryDocumentStore()
    const billing = new FakeBilling(10_000_000_000n)
    const born = (life: Life, aheadMs = 0) => {
      const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) }
      const world = parts({ store: new StoreOfLife(store, life), billing: life.of(billing), isExclusive, clock })
      world.far.transcript = { text: 'a', segments: SEGMENTS }
      return world
    }
    const life = new Life(last)
    const ended = transcribeDocument(born(life).deps, createRequestContext(), audioInput()).then(() => true)
    if (await Promise.race([ended, life.over])) length = last
    const next = born(new Life(), isExclusive ? 0 : LEASE_ENDS_MS)
    expect(await transcribeDocument(next.deps, createRequestContext(), audioInput()), `killed at ${last}`).toEqual(SEGMENTS)
    const charged = [...billing.holds.values()].map((hold) => hold.charged).filter((amount) => amount > 0n)
    expect({ charged, open: billing.openHolds, at: last }).toEqual({ charged: [COST], open: 0, at: last })
  }
  expect(length).toBeGreaterThan(5)
})
