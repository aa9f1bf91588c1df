import { cpSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Tokenizer } from '@huggingface/tokenizers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { isAbort } from '../../../common/errors.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { EmbeddingEngine } from '../../ports/engines.ts'
import { embeddingEngine } from './embedding-engine.ts'
import { type EmbeddedEngines, openEmbeddedEngines } from './engines.ts'
import { ModelThread } from './model-thread.ts'

const MODEL = new URL('../../../../models/e5-small-ar-en/', import.meta.url)
const CALL = { engineModel: 'e5-small-ar-en', requestId: 'req_1', dimensions: null, purpose: 'query' } as const
const NEVER = new AbortController().signal
const reference = JSON.parse(readFileSync(new URL('reference.json', MODEL), 'utf8')) as {
  tolerance: number
  texts: { text: string; input_ids: number[]; neutral_embedding_first8: number[] }[]
  neutral_cosines: number[][]
}

/** Vectors of the network with 4-bit weights, rounded to half precision: collections store such vectors. */
const RECORDED = JSON.parse(readFileSync(new URL('__fixtures__/vectors.json', import.meta.url), 'utf8')) as {
  texts: { purpose: 'query' | 'passage'; text: string; tokens: number; vector: string; tokenStates?: string }[]
}
const bytesOf = (base64: string) => Int8Array.from(Buffer.from(base64, 'base64'))

const open = (modelDirectory: URL | string) => openEmbeddedEngines({ modelDirectory, log: silentLog, clock: systemClock })

const cosine = (a: Float32Array | Int8Array, b: Int8Array) =>
  Array.from(a).reduce((sum, value, index) => sum + value * b[index]!, 0) / Math.hypot(...a) / Math.hypot(...b)
const differentBits = (a: Int8Array, b: Int8Array) =>
  a.reduce((sum, byte, index) => sum + ((byte ^ b[index]!) & 0xff).toString(2).replaceAll('0', '').length, 0)
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, index) => sum + value * b[index]!, 0)

describe('e5-small-ar-en', () => {
  let engines: EmbeddedEngines
  let embedding: EmbeddingEngine
  beforeAll(async () => {
    engines = await open(MODEL)
    embedding = engines.embedding
  })
  afterAll(() => engines[Symbol.asyncDispose]())
  const embed = async (texts: readonly string[]) => (await embedding.embed(CALL, texts, NEVER)).vectors

  it('returns the reference vectors and cosines', async () => {
    expect(await engines.problems()).toEqual([])
    const vectors = await embed(reference.texts.map(({ text }) => text))
    for (const [index, { neutral_embedding_first8: expected }] of reference.texts.entries()) {
      expect(vectors[index]).toHaveLength(384)
      expect(Math.abs(dot(vectors[index]!, vectors[index]!) - 1)).toBeLessThan(1e-5)
      for (const [dimension, value] of expected.entries())
        expect(Math.abs(vectors[index]![dimension]! - value)).toBeLessThanOrEqual(reference.tolerance)
      for (const [other, cosine] of reference.neutral_cosines[index]!.entries())
        expect(Math.abs(dot(vectors[index]!, vectors[other]!) - cosine)).toBeLessThanOrEqual(reference.tolerance)
    }
  })

  it('returns the recorded vectors and token embeddings, in Arabic and English, at all lengths', async () => {
    for (const { purpose, text, tokens: count, ...recorded } of RECORDED.texts) {
      const { vectors, tokenEmbeddings, tokens } = await embedding.embed({ ...CALL, purpose, withTokenEmbeddings: true }, [text], NEVER)
      expect({ text, tokens }).toEqual({ text, tokens: count })
      expect(cosine(vectors[0]!, bytesOf(recorded.vector))).toBeGreaterThanOrEqual(0.999)
      if (recorded.tokenStates === undefined) continue
      const [own, other] = [tokenEmbeddings![0]!, bytesOf(recorded.tokenStates)]
      expect({ text, length: own.length }).toEqual({ text, length: other.length })
      if (purpose === 'query') expect(own.length === 0 || cosine(own, other) >= 0.999).toBe(true)
      else expect(differentBits(own, other)).toBeLessThanOrEqual(own.length * 8 * 0.01)
    }
  })

  it('returns token embeddings on request, which match answers across languages', async () => {
    const embedTokens = async (purpose: 'query' | 'passage', texts: readonly string[]) =>
      (await embedding.embed({ ...CALL, purpose, withTokenEmbeddings: true }, texts, NEVER)).tokenEmbeddings!
    const texts = ['تغلق المكتبة في التاسعة مساء.', 'النحاس يوصل الكهرباء أفضل من الحديد.'].map((text) => `passage: ${text}`)
    const [query] = await embedTokens('query', ['query: When does the library close?'])
    const [relevant, other, long, none] = await embedTokens('passage', [...texts, `passage: ${'one two three '.repeat(100)}`, 'passage: '])
    // No embedding of the question mark, and one of each token of a chunk.
    const [unmarked] = await embedTokens('query', ['query: When does the library close'])
    expect([query!.length % 128, query!.length]).toEqual([0, unmarked!.length])
    expect([long!.length % 16, long!.length > 300 * 16, none!.length]).toEqual([1, true, 0])
    const rows = Array.from({ length: query!.length / 128 }, (_, row) => query!.subarray(row * 128, (row + 1) * 128))
    const numbersOf = (embeddings: Int8Array) =>
      Array.from({ length: (embeddings.length - 1) * 8 }, (_, i) => ((embeddings[1 + (i >> 3)]! >> (i & 7)) & 1 ? 1 : -1))
    const nearest = (row: Int8Array, numbers: readonly number[]) =>
      Math.max(...Array.from({ length: numbers.length / 128 }, (_, at) => row.reduce((sum, x, i) => sum + x * numbers[at * 128 + i]!, 0)))
    const closeness = (embeddings: Int8Array) => rows.reduce((sum, row) => sum + nearest(row, numbersOf(embeddings)), 0)
    expect(closeness(relevant!)).toBeGreaterThan(closeness(other!))
    expect((await embedding.embed(CALL, texts, NEVER)).tokenEmbeddings).toEqual([])
    // Alone and padded beside longer texts: equal except for rounding.
    const [alone] = await embedTokens('passage', texts.slice(0, 1))
    expect(alone).toHaveLength(relevant!.length)
    expect(Math.abs(closeness(alone!) / closeness(relevant!) - 1)).toBeLessThanOrEqual(0.02)
  })

  it('puts a text nearest to its equivalent across languages', async () => {
    const [question, arabicQuestion, english, arabic, unrelated] = (await embed([
      'query: When does the library close?',
      'query: متى تغلق المكتبة؟',
      'passage: The library closes at nine in the evening.',
      'passage: تغلق المكتبة في التاسعة مساء.',
      'passage: Copper conducts electricity better than iron.',
    ])) as [Float32Array, Float32Array, Float32Array, Float32Array, Float32Array]
    for (const eachQuestion of [question, arabicQuestion]) {
      for (const text of [english, arabic]) expect(dot(eachQuestion, text)).toBeGreaterThan(dot(eachQuestion, unrelated) + 0.03)
    }
  })

  it('counts tokens without special tokens, and with them for what it embeds', async () => {
    const counts = await embedding.countTokens(['', ...reference.texts.map(({ text }) => text)], NEVER)
    expect(counts).toEqual([0, ...reference.texts.map(({ input_ids: ids }) => ids.length - 2)])
    const { tokens, source } = await embedding.embed(CALL, [reference.texts[0]!.text], NEVER)
    expect({ tokens, source }).toEqual({ tokens: 8, source: 'counted' })
  })

  it('counts a long text in parts like the whole text', async () => {
    const text = `${'The cat sat on the mat, 25 times. '.repeat(600)}${'جلست القطة على السجادة. '.repeat(600)}`
    const whole = new Tokenizer(
      JSON.parse(readFileSync(new URL('tokenizer.json', MODEL), 'utf8')),
      JSON.parse(readFileSync(new URL('tokenizer_config.json', MODEL), 'utf8')),
    )
    const expected = whole.encode(text.trim(), { add_special_tokens: false }).ids.length
    expect(await embedding.countTokens([text, 'x'], NEVER)).toEqual([expected, 1])
  })

  it('truncates a text after 512 tokens', async () => {
    const long = 'passage: '.concat('water '.repeat(700))
    const [cut, longer] = (await embed([long, `${long} and something else entirely`])) as [Float32Array, Float32Array]
    expect(longer).toEqual(cut)
    expect((await embedding.embed(CALL, [long], NEVER)).tokens).toBe(510)
  })

  it('accepts token lists with or without special tokens, and refuses unknown tokens', async () => {
    const { text, input_ids: ids } = reference.texts[0]!
    const [fromText] = await embed([text])
    const { vectors, tokens } = await embedding.embed(CALL, [ids, ids.slice(1, -1)], NEVER)
    expect(tokens).toBe(16)
    for (const vector of vectors) expect(dot(vector, fromText!)).toBeGreaterThan(0.9999)
    await expect(embedding.embed(CALL, [[5, 200_000]], NEVER)).rejects.toMatchObject({ code: 'invalid_request', param: 'input' })
  })

  it('returns the same vector for a text alone, in a batch, and as tokens', async () => {
    const texts = ['query: tea', 'passage: tea leaves', 'query: شاي أخضر', 'passage: '.concat('water and salt '.repeat(60)), 'query: a']
    const tokens = await embedding.tokenize!(texts, NEVER)
    expect(tokens.map(({ length }) => length)).toEqual(await embedding.countTokens(texts, NEVER))
    const together = await embed(texts)
    const { vectors } = await embedding.embed(CALL, tokens, NEVER)
    for (const [index, text] of texts.entries()) {
      const [alone] = await embed([text])
      for (const vector of [together[index]!, vectors[index]!])
        for (const [dimension, value] of vector.entries()) expect(value).toBeCloseTo(alone![dimension]!, 6)
    }
  })

  it('returns vectors of fewer dimensions with length 1 on request, and refuses more dimensions', async () => {
    const { vectors } = await embedding.embed({ ...CALL, dimensions: 100 }, ['query: tea'], NEVER)
    expect(vectors[0]).toHaveLength(100)
    expect(dot(vectors[0]!, vectors[0]!)).toBeCloseTo(1, 5)
    await expect(embedding.embed({ ...CALL, dimensions: 385 }, ['query: tea'], NEVER)).rejects.toMatchObject({
      code: 'integer_above_max_value',
    })
  })

  it('embeds an empty text, and an empty list', async () => {
    expect((await embed(['']))[0]).toHaveLength(384)
    expect(await embed([])).toEqual([])
  })

  it('embeds a large number of one-token texts', async () => {
    const vectors = await embed(Array.from({ length: 600 }, (_, index) => (index % 2 === 0 ? '' : 'a')))
    expect(vectors).toHaveLength(600)
    expect(dot(vectors[1]!, vectors[599]!)).toBeCloseTo(1, 5)
  })

  it('assigns each text its own vector under concurrent calls', async () => {
    const texts = Array.from({ length: 24 }, (_, index) => `passage: ${index} ${'and more words '.repeat(index)}`)
    const together = await embed(texts)
    const controller = new AbortController()
    const leaving = embedding.embed(CALL, texts, controller.signal)
    const calls = Promise.all(texts.map((text, index) => embedding.embed({ ...CALL, organizationId: `org ${index % 3}` }, [text], NEVER)))
    controller.abort()
    await expect(leaving).rejects.toSatisfy(isAbort)
    for (const [index, { vectors }] of (await calls).entries())
      for (const [dimension, value] of vectors[0]!.entries()) expect(value).toBeCloseTo(together[index]![dimension]!, 6)
  })

  it('serves a search before the rest of a batch', async () => {
    let batchIsDone = false
    const batch = embed(Array.from({ length: 24 }, (_, index) => `passage: ${'words and more words '.repeat(10)}${index}`)).then(() => {
      batchIsDone = true
    })
    await embed(['query: something urgent'])
    expect(batchIsDone).toBe(false)
    await batch
  })

  it("rejects with the caller's own reason when it disconnects", async () => {
    const controller = new AbortController()
    const call = embedding.embed(CALL, ['x', 'y'], controller.signal)
    controller.abort()
    await expect(call).rejects.toSatisfy(isAbort)
    await expect(embedding.embed(CALL, ['x'], AbortSignal.abort())).rejects.toSatisfy(isAbort)
  })

  it('refuses more texts than its batch', async () => {
    const texts = Array.from({ length: embedding.maxBatch + 1 }, () => 'x')
    await expect(embedding.embed(CALL, texts, NEVER)).rejects.toMatchObject({ code: 'array_above_max_length' })
  })
})

describe('Failure of the embedded model', () => {
  const folder = temporaryFolder()

  it('is reported, and fails calls with a clear error, when its files are missing', async () => {
    await using engines = await open(join(folder, 'nowhere'))
    expect(await engines.problems()).toEqual([expect.stringContaining('cannot be loaded')])
    await expect(engines.embedding.embed(CALL, ['x'], NEVER)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('missing or corrupted'),
    })
  })

  it('ends when its files are repaired', async () => {
    const directory = join(folder, 'mended')
    cpSync(MODEL, directory, { recursive: true })
    truncateSync(join(directory, 'model.onnx'), 1_000_000)
    await using engines = await open(directory)
    expect(await engines.problems()).toHaveLength(1)
    await expect(engines.embedding.countTokens(['x'], NEVER)).rejects.toMatchObject({ code: 'engine_unavailable' })
    cpSync(new URL('model.onnx', MODEL), join(directory, 'model.onnx'))
    expect(await engines.embedding.countTokens(['x'], NEVER)).toEqual([1])
    expect(await engines.problems()).toEqual([])
  })

  it('fails calls with a clear error on a system for which the runtime has no build', async () => {
    const file = join(folder, 'no-build.ts')
    writeFileSync(file, "throw new Error('no build for this system')")
    await using thread = new ModelThread(MODEL, silentLog, systemClock, pathToFileURL(file))
    for (let call = 0; call < 2; call += 1)
      await expect(thread.tokenize(['x'], NEVER)).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: expect.stringContaining('cannot be loaded'),
      })
    expect(await thread.problems()).toEqual([expect.stringContaining('no build for this system')])
  })

  it('its files are checked at the start, and the first call loads them', async () => {
    const file = join(folder, 'first.ts')
    const started = join(folder, 'started')
    writeFileSync(
      file,
      `import { writeFileSync } from 'node:fs'
       writeFileSync(${JSON.stringify(started)}, '')
       export const call = ({ task }: { task: { method: string } }) => ({ value: task.method === 'load' ? 1 : [[0]] })`,
    )
    await using thread = new ModelThread(MODEL, silentLog, systemClock, pathToFileURL(file))
    expect(await thread.problems()).toEqual([])
    expect(existsSync(started)).toBe(false)
    expect(await thread.tokenize(['x'], NEVER)).toEqual([[0]])
    expect(existsSync(started)).toBe(true)
  })

  it('fails pending calls when its thread dies, restarts it, and stops for a while after repeated deaths', async () => {
    const file = join(folder, 'mortal.ts')
    writeFileSync(
      file,
      `export const call = ({ task }: { task: { method: string; texts: readonly string[] } }) => {
         if (task.method === 'load') return { value: 1 }
         return task.texts[0] === 'die' ? process.exit(3) : { value: task.texts.map(() => [0]) }
       }`,
    )
    let now = Date.parse('2026-11-21T10:00:00Z')
    await using thread = new ModelThread(MODEL, silentLog, { ...systemClock, now: () => new Date(now) }, pathToFileURL(file))
    const engine = embeddingEngine(thread, null)
    for (let life = 1; life <= 5; life += 1) {
      expect(await engine.countTokens(['a', 'b'], NEVER)).toEqual([1, 1])
      await expect(engine.countTokens(['die'], NEVER)).rejects.toMatchObject({ code: 'engine_unavailable' })
    }
    await expect(engine.countTokens(['a'], NEVER)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('repeatedly'),
    })
    now += 61_000
    expect(await engine.countTokens(['a'], NEVER)).toEqual([1])
  })

  it('a query runs before documents of others, and nothing more of a disconnected call runs', async () => {
    const file = join(folder, 'counting.ts')
    // The thread's vectors show how many batches preceded them.
    writeFileSync(
      file,
      `let batches = 0
       export const call = async ({ task }: { task: { method: string } }) => {
         if (task.method === 'load') return { value: 5 }
         await new Promise((resolve) => setTimeout(resolve, 20))
         return { value: { vectors: new Float32Array([batches++]), tokenEmbeddings: [] } }
       }`,
    )
    await using thread = new ModelThread(MODEL, silentLog, systemClock, pathToFileURL(file))
    const controller = new AbortController()
    const text = Array.from({ length: 300 }, () => 4)
    const embedOne = async (purpose: 'query' | 'passage') =>
      (await thread.embed([text], NEVER, 'searching', { purpose, withTokenEmbeddings: false })).vectors[0]![0]!
    const documents = ['a', 'b'].map((organizationId) => {
      const options = { purpose: 'passage', withTokenEmbeddings: false } as const
      return thread.embed(
        Array.from({ length: 20 }, () => text),
        controller.signal,
        organizationId,
        options,
      )
    })
    const before = await embedOne('passage')
    expect(await embedOne('query')).toBeLessThanOrEqual(before + 2)
    controller.abort()
    for (const call of documents) await expect(call).rejects.toSatisfy(isAbort)
    expect(await embedOne('passage')).toBeLessThanOrEqual(before + 4)
  })

  it('closing fails pending calls', async () => {
    const engines = await open(MODEL)
    const pending = engines.embedding
      .embed(
        CALL,
        Array.from({ length: 500 }, () => 'x'),
        NEVER,
      )
      .catch((error: unknown) => error)
    await engines.problems()
    await engines[Symbol.asyncDispose]()
    expect(await pending).toMatchObject({ code: 'engine_unavailable' })
    await expect(engines.embedding.countTokens(['x'], NEVER)).rejects.toMatchObject({ code: 'engine_unavailable' })
  })
})
