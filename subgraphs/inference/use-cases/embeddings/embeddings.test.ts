import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { type EmbeddingStopped, KisError } from '../../../common/errors.ts'
import { shortened } from '../../domain/embeddings/vectors.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { NeverSent } from '../../ports/engines.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { unit } from '../../test-support/scripted-engine.ts'
import { createEmbeddings } from './create-embeddings.ts'
import { countTokens, describeEmbeddingModel } from './describe-embedding-model.ts'
import { closeEmbedding, embedChunks, openEmbedding } from './embed-document.ts'
import { embedQuery } from './embed-query.ts'

describe('Embeddings', () => {
  it('are created in batches of the engine, in order, under one hold, and charged by its usage', async () => {
    const { deps, billing, near } = parts()
    near.createVector = (text) => Float32Array.from(text === 'query: c' ? [0, 1, 0, 0] : [1, 0, 0, 0])
    const { vectors, promptTokens, cost } = await createEmbeddings(deps, createRequestContext(), {
      model: 'embed',
      input: ['a', 'b', 'c', 'd'],
    })
    expect(near.embedded.map(({ length }) => length)).toEqual([3, 1])
    expect(vectors.map((vector) => vector.indexOf(1))).toEqual([0, 0, 1, 0])
    expect([promptTokens, cost]).toEqual([40, 16_000n])
    // Each text is 2 tokens with its prefix, and 2 special tokens; the tokenizer is the model's own, so no margin is
    // held.
    expect(billing.only.amount).toBe(16_000n)
    expect(billing.writes).toEqual(['placeHold', 'settleHold'])
  })

  it.each([
    ['embed', 'tea', 'query: tea'],
    ['embed', 'query: tea', 'query: tea'],
    ['embed', 'passage: tea', 'passage: tea'],
    ['embed-far', 'tea', 'tea'],
  ])('%s receives `%s` as `%s`', async (model, input, seen) => {
    const { deps, near, far } = parts()
    await createEmbeddings(deps, createRequestContext(), { model, input })
    expect([...near.embedded, ...far.embedded]).toEqual([[seen]])
  })

  it('are shortened by the engine if the model can, else by the service, and have length 1', async () => {
    const { deps, far, near } = parts()
    near.createVector = () => Float32Array.from([0.6, 0, 0.8, 0])
    for (const model of ['embed', 'embed-far']) {
      const { vectors } = await createEmbeddings(deps, createRequestContext(), { model, input: 'a', dimensions: 2 })
      expect(vectors[0]).toHaveLength(2)
      expect(Math.hypot(...vectors[0]!)).toBeCloseTo(1, 6)
    }
    expect(far.embeds).toBe(1)
  })

  it('a shortened vector has length 1, unless it is zero', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 2, maxLength: 50 }),
        fc.integer({ min: 1, max: 50 }),
        (numbers, length) => {
          const short = shortened(Float32Array.from(numbers), length)
          const norm = Math.hypot(...short)
          expect(short.length).toBe(Math.min(length, numbers.length))
          expect(norm === 0 || norm < 1e-3 || Math.abs(norm - 1) < 1e-3).toBe(true)
        },
      ),
    )
  })

  it('accept tokens where the model does', async () => {
    const { deps, far, near } = parts()
    expect((await createEmbeddings(deps, createRequestContext(), { model: 'embed-far', input: [1, 2, 3] })).vectors).toHaveLength(1)
    expect((await createEmbeddings(deps, createRequestContext(), { model: 'embed-far', input: [[1], [2, 3]] })).vectors).toHaveLength(2)
    expect(far.embedded).toEqual([[[1, 2, 3]], [[1], [2, 3]]])
    expect(near.embeds).toBe(0)
  })

  it('accept tokens as text where the model accepts none, with its prefix and its own count', async () => {
    const { deps, near } = parts()
    const tokens = [...'green tea'].map((character) => character.codePointAt(0)!)
    const { vectors, promptTokens } = await createEmbeddings(deps, createRequestContext(), { model: 'embed', input: tokens })
    const asText = await createEmbeddings(deps, createRequestContext(), { model: 'embed', input: 'green tea' })
    expect([vectors, promptTokens]).toEqual([asText.vectors, asText.promptTokens])
    await createEmbeddings(deps, createRequestContext(), { model: 'embed', input: [tokens, [97]] })
    expect(near.embedded).toEqual([['query: green tea'], ['query: green tea'], ['query: green tea', 'query: a']])
  })

  it('leave an estimate slightly above the limit to the engine', async () => {
    const { deps, far } = parts()
    await createEmbeddings(deps, createRequestContext(), { model: 'embed-far', input: 'word '.repeat(12_000) })
    await createEmbeddings(deps, createRequestContext(), { model: 'embed-far', input: Array(40).fill('word '.repeat(8_000)) })
    expect(far.embeds).toBe(15)
  })

  const long = 'a b c d e f g h i j'
  it.each([
    ['no model', { input: 'a' }, 'missing_required_parameter', 'model'],
    ['no input', { model: 'embed' }, 'missing_required_parameter', 'input'],
    ['input of another type', { model: 'embed', input: 5 }, 'invalid_type', 'input'],
    ['an empty text', { model: 'embed', input: '' }, 'invalid_request', 'input'],
    ['an empty list', { model: 'embed', input: [] }, 'invalid_request', 'input'],
    ['an empty text among others', { model: 'embed', input: ['a', ''] }, 'invalid_request', 'input[1]'],
    ['a number among texts', { model: 'embed', input: ['a', 1] }, 'invalid_type', 'input[1]'],
    ['a broken token', { model: 'embed-far', input: [1, 2.5] }, 'invalid_type', 'input[1]'],
    ['an invalid token ID', { model: 'embed', input: [[97], [97, 2_000_000]] }, 'invalid_value', 'input[1][1]'],
    ['an invalid token ID, in the only text', { model: 'embed', input: [97, 2_000_000] }, 'invalid_value', 'input[1]'],
    ['too many tokens to read', { model: 'embed', input: [...Array(38).fill(Array(8_108).fill(97))] }, 'context_length_exceeded', 'input'],
    ['an empty list of tokens', { model: 'embed-far', input: [[1], []] }, 'invalid_request', 'input[1]'],
    ['2,049 texts', { model: 'embed', input: Array(2_049).fill('a') }, 'array_above_max_length', 'input'],
    ['a text over the limit', { model: 'embed', input: ['a', long] }, 'context_length_exceeded', 'input[1]'],
    ['a single text over the limit', { model: 'embed', input: long }, 'context_length_exceeded', 'input'],
    ['tokens over the limit', { model: 'embed-far', input: [[1], Array(8_193).fill(1)] }, 'context_length_exceeded', 'input[1]'],
    [
      '300,001 tokens in total',
      { model: 'embed-far', input: [...Array(37).fill(Array(8_108).fill(1)), [1, 2, 3, 4, 5]] },
      'context_length_exceeded',
      'input',
    ],
    ['a text far over the limit by estimate', { model: 'embed-far', input: 'word '.repeat(13_000) }, 'context_length_exceeded', 'input'],
    ['an overlong model name', { model: 'm'.repeat(301), input: 'a' }, 'string_above_max_length', 'model'],
    ['0 dimensions', { model: 'embed', input: 'a', dimensions: 0 }, 'integer_below_min_value', 'dimensions'],
    ['more dimensions than the model has', { model: 'embed', input: 'a', dimensions: 5 }, 'integer_above_max_value', 'dimensions'],
    ['a model of another kind', { model: 'chat', input: 'a' }, 'model_not_found', 'model'],
  ] as [string, { model: unknown; input: unknown }, string, string][])('refuse %s', async (_name, input, code, param) => {
    const { deps, billing, near } = parts()
    await expect(createEmbeddings(deps, createRequestContext(), input)).rejects.toMatchObject({ code, param })
    expect([billing.writes, near.embeds]).toEqual([[], 0])
  })

  it.each([
    ['too short', () => unit(3)],
    ['too long', () => unit(5)],
  ])('that are %s fail with an engine error and cost nothing', async (_name, createVector) => {
    const { deps, billing, near } = parts()
    near.createVector = createVector
    await expect(createEmbeddings(deps, createRequestContext(), { model: 'embed', input: 'a' })).rejects.toMatchObject({
      code: 'engine_error',
    })
    expect(billing.only.state).toBe('voided')
  })

  it('stopped by a limit or deadline of the service cost the batches that were sent', async () => {
    const { deps, billing, near } = parts()
    near.embedFailure = new StoppedByLimit('engine_timeout', 'late')
    await expect(createEmbeddings(deps, createRequestContext(), { model: 'embed', input: ['a', 'b', 'c', 'd'] })).rejects.toBe(
      near.embedFailure,
    )
    expect(billing.only).toMatchObject({ charged: 12_000n, used: { source: 'counted' } })
  })

  it.each([
    ['embed', 16],
    ['embed-far', 4],
  ])('of %s are charged by count where the engine reports zero', async (model, tokens) => {
    const { deps, billing, near, far } = parts()
    near.embedTokens = far.embedTokens = 0
    const { cost, promptTokens } = await createEmbeddings(deps, createRequestContext(), { model, input: ['a', 'b', 'c', 'd'] })
    expect([promptTokens, cost]).toEqual([tokens, BigInt(tokens) * 1_000n])
    expect(billing.only.used).toMatchObject({ source: 'counted' })
  })

  it.each([
    ['embed', 16],
    ['embed-far', 4],
  ])('of %s are charged by count where the total of all reports exceeds an `Int`', async (model, tokens) => {
    const { deps, billing, near, far } = parts()
    near.embedTokens = far.embedTokens = 600_000_000
    const { promptTokens } = await createEmbeddings(deps, createRequestContext(), { model, input: ['a', 'b', 'c', 'd'] })
    expect(promptTokens).toBe(tokens)
    expect(billing.only.used).toMatchObject({ source: 'counted' })
  })

  it('of a disconnected caller cost the batches that were sent', async () => {
    const { deps, billing, near } = parts()
    near.embedFailure = 'wait'
    const leaving = new AbortController()
    const response = createEmbeddings(deps, createRequestContext(somebody, leaving.signal), {
      model: 'embed',
      input: ['a', 'b', 'c', 'd'],
    }).catch((error) => error)
    await eventually(() => near.embeds === 1)
    leaving.abort()
    await response
    expect(billing.only).toMatchObject({ state: 'settled', charged: 12_000n, used: { source: 'counted' } })
  })

  it.each([
    [1, 'voided', 0n],
    [2, 'settled', 12_000n],
  ])('of a caller who disconnects before batch %i is sent do not cost that batch', async (batch, state, charged) => {
    const { deps, billing, near } = parts()
    const { embed } = near.embedding
    const waits = Promise.withResolvers<void>()
    near.embedding.embed = (call, input, signal) => {
      if (near.embeds + 1 < batch) return embed(call, input, signal)
      return new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(new NeverSent(signal.reason)))
        waits.resolve()
      })
    }
    const leaving = new AbortController()
    const context = createRequestContext(somebody, leaving.signal)
    const response = createEmbeddings(deps, context, { model: 'embed', input: ['a', 'b', 'c', 'd'] }).catch((error) => error)
    await waits.promise
    leaving.abort()
    expect(await response).toBe(leaving.signal.reason)
    expect(billing.only).toMatchObject({ state, charged })
  })
})

describe('Query embedding', () => {
  it('has its prefix and is charged, for a key that may only search', async () => {
    const { deps, billing, near } = parts()
    const searcher = { ...somebody, scopes: ['knowledge:read' as const] }
    const { vector, tokens } = await embedQuery(deps, createRequestContext(searcher), { modelId: 'embed', text: 'green tea' })
    expect([vector.length, tokens, near.embedded]).toEqual([4, 10, [['query: green tea']]])
    expect(billing.only).toMatchObject({ state: 'settled', charged: 5_000n })
  })

  const step = 'run_1/steps/2/embedding'

  it('as a step of a run is charged if its caller disconnects, and a retry gets its vector', async () => {
    const { deps, billing, near } = parts()
    const { embed } = near.embedding
    const sent = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    near.embedding.embed = async (call, input, signal) => {
      sent.resolve()
      await released.promise
      signal.throwIfAborted()
      return embed(call, input, signal)
    }
    const leaving = new AbortController()
    const query = { modelId: 'embed', text: 'green tea', step }
    const first = embedQuery(deps, createRequestContext(somebody, leaving.signal), query)
    await sent.promise
    leaving.abort()
    released.resolve()
    expect(await first).toMatchObject({ tokens: 10, cost: 5_000n })
    expect(await embedQuery(deps, createRequestContext(), query)).toMatchObject({ tokens: 10, cost: 5_000n })
    expect([near.embeds, billing.only.charged]).toEqual([1, 5_000n])
    const left = createRequestContext(somebody, leaving.signal)
    await expect(embedQuery(deps, left, { ...query, step: 'run_1/steps/3/embedding' })).rejects.toBe(leaving.signal.reason)
    expect(near.embeds).toBe(1)
  })

  it('as a step of a run is free if its process stops, and another process repeats it', async () => {
    const { deps, billing, near, store } = parts()
    near.embedFailure = 'wait'
    const query = { modelId: 'embed', text: 'green tea', step }
    const first = embedQuery(deps, createRequestContext(), query)
    await Promise.all([expect(first).rejects.toThrow(), eventually(() => near.embeds === 1).then(() => deps.keyedCalls[Symbol.dispose]())])
    expect([...billing.holds.values()]).toMatchObject([{ state: 'voided' }])
    expect(await embedQuery(parts({ billing, store }).deps, createRequestContext(), query)).toMatchObject({ cost: 5_000n })
  })

  it('is refused with a model outside the allowlist', async () => {
    const { deps, near } = parts()
    await expect(
      embedQuery(deps, createRequestContext({ ...somebody, modelAllowlist: ['chat'] }), { modelId: 'embed', text: 'a' }),
    ).rejects.toMatchObject({ code: 'model_not_found' })
    expect(near.embeds).toBe(0)
  })
})

describe('Document embedding', () => {
  const batch = { modelId: 'embed', texts: ['a', 'b'], tokensBefore: 0 }

  it('runs batch by batch under one hold, and is charged once however often it is closed', async () => {
    const { deps, billing, near } = parts()
    const holdId = await openEmbedding(deps, createRequestContext(), { modelId: 'embed', tokens: 100 })
    expect(billing.only.amount).toBe(100_000n)
    const { vectors, tokens } = await embedChunks(deps, createRequestContext(), { ...batch, holdId })
    expect([vectors.length, tokens, near.embedded]).toEqual([2, 20, [['passage: a', 'passage: b']]])
    await embedChunks(deps, createRequestContext(), { ...batch, holdId, tokensBefore: 20 })
    expect(billing.only.checkpoint.inputTokens).toBe(20)
    for (let time = 0; time < 2; time++) expect(await closeEmbedding(deps, createRequestContext(), { holdId, tokens: 40 })).toBe(40_000n)
    expect(billing.balance).toBe(1_000_000_000n - 40_000n)
    const batches = ['checkpointHold', 'dispatchHold', 'checkpointHold', 'dispatchHold']
    expect(billing.writes).toEqual(['placeHold', ...batches, 'settleHold', 'settleHold'])
  })

  it("calls no engine under a hold that has ended, is missing, or is another organization's", async () => {
    const { deps, near } = parts()
    const holdId = await openEmbedding(deps, createRequestContext(), { modelId: 'embed', tokens: 100 })
    const otherContext = createRequestContext({ ...somebody, organizationId: 'org_b' })
    await expect(embedChunks(deps, otherContext, { ...batch, holdId })).rejects.toMatchObject({ code: 'not_found' })
    await expect(closeEmbedding(deps, otherContext, { holdId, tokens: 1 })).rejects.toMatchObject({ code: 'not_found' })
    await closeEmbedding(deps, createRequestContext(), { holdId, tokens: 0 })
    await expect(embedChunks(deps, createRequestContext(), { ...batch, holdId })).rejects.toMatchObject({ code: 'not_found' })
    await expect(embedChunks(deps, createRequestContext(), { ...batch, holdId: 'hold_x' })).rejects.toMatchObject({ code: 'not_found' })
    expect(near.embeds).toBe(0)
  })

  it('is refused in batches of more than 64 chunks, or with a chunk over the limit', async () => {
    const { deps } = parts()
    const open = { modelId: 'embed', holdId: 'hold_x', tokensBefore: 0 }
    await expect(embedChunks(deps, createRequestContext(), { ...open, texts: Array(65).fill('a') })).rejects.toMatchObject({
      code: 'array_above_max_length',
      param: 'texts',
    })
    await expect(embedChunks(deps, createRequestContext(), { ...open, texts: ['a b c d e f g h i j'] })).rejects.toMatchObject({
      code: 'context_length_exceeded',
      param: 'texts[0]',
    })
  })

  it.each([
    [
      'of the service',
      new StoppedByLimit('engine_timeout', 'late', { retryAfterMs: 7 }),
      { tokens: 8, code: 'engine_timeout', retryAfterMs: 7 },
    ],
    ['of the engine', new KisError('engine_timeout', 'late'), { tokens: undefined, code: 'engine_timeout' }],
  ])('reports what was sent when a limit %s ends a batch', async (_whose, error, batches) => {
    const { deps, near } = parts()
    const holdId = await openEmbedding(deps, createRequestContext(), { modelId: 'embed', tokens: 100 })
    near.embedFailure = error
    const failure = await embedChunks(deps, createRequestContext(), { ...batch, holdId }).catch((failed) => failed)
    const { tokens, code, retryAfterMs } = KisError.fromGraphQL(failure) as EmbeddingStopped
    expect({ tokens, code, retryAfterMs }).toMatchObject(batches)
  })

  it('retains its hold when a batch fails, so that the batch can be retried', async () => {
    const { deps, billing, near } = parts()
    const holdId = await openEmbedding(deps, createRequestContext(), { modelId: 'embed', tokens: 100 })
    near.embedFailure = new KisError('engine_unavailable', 'down')
    await expect(embedChunks(deps, createRequestContext(), { ...batch, holdId })).rejects.toMatchObject({ code: 'engine_unavailable' })
    near.embedFailure = null
    await embedChunks(deps, createRequestContext(), { ...batch, holdId })
    expect(billing.openHolds).toBe(1)
  })
})

it('the description of an embedding model includes the tokens of its marks and prefix', async () => {
  const { deps } = parts()
  expect(await describeEmbeddingModel(deps, createRequestContext(), 'embed')).toEqual({
    id: 'embed',
    dimensions: 4,
    maxTokens: 12,
    overheadTokens: 4,
    cosineSpread: 0.03,
    calibration: null,
  })
  expect(await describeEmbeddingModel(deps, createRequestContext(), 'embed-far')).toMatchObject({
    maxTokens: 8_192,
    overheadTokens: 0,
    cosineSpread: null,
    calibration: null,
  })
  expect(await countTokens(deps, createRequestContext(), { modelId: 'embed', texts: ['a', 'b c'] })).toEqual([1, 2])
  await expect(
    describeEmbeddingModel(deps, createRequestContext({ ...somebody, residencyPolicy: 'local_only' }), 'embed-far'),
  ).rejects.toMatchObject({
    code: 'residency_policy_violation',
  })
})
