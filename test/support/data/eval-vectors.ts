import '../../../subgraphs/inference/adapters/embedded/no-telemetry.ts'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Tokenizer } from '@huggingface/tokenizers'
import * as ort from 'onnxruntime-node'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { openEmbeddedEngines } from '../../../subgraphs/inference/adapters/embedded/engines.ts'

const ROOT = join(import.meta.dirname, '../../..')
const MODEL = join(ROOT, 'models/e5-small-ar-en')
const CACHE = join(ROOT, 'node_modules/.cache/kis-eval')
const DATA = join(ROOT, '../shared/eval/xquad-dev.json')
const DIMENSIONS = 384
const MAX_TOKENS = 512
const END_OF_TEXT = 2
/** Texts of one call of the engine. */
const BATCH = 256

export type Language = 'ar' | 'en'

export interface EvalData {
  readonly paragraphs: readonly { readonly id: string; readonly lang: Language; readonly title: string; readonly text: string }[]
  readonly questions: readonly {
    readonly id: string
    readonly lang: Language
    readonly text: string
    readonly paragraph_ids: readonly string[]
  }[]
}

/**
 * Returns the development half of XQuAD retrieval. Returns null if the shared folder is not beside the project; with
 * `KIS_REQUIRE_SHARED=1` this is an error.
 */
export async function evalData(): Promise<EvalData | null> {
  if (existsSync(DATA)) return JSON.parse(await readFile(DATA, 'utf8')) as EvalData
  if (process.env.KIS_REQUIRE_SHARED === '1') throw new Error(`${DATA} is absent and KIS_REQUIRE_SHARED is set`)
  return null
}

/**
 * Returns one unit vector per text from the project's embedding model. The texts must have their prefix. The vectors
 * are cached under `node_modules/.cache`, with the model's checksum and the texts as the key, because embedding them
 * all takes about a minute.
 */
export async function evalVectors(texts: readonly string[]): Promise<readonly Float32Array[]> {
  const model = await readFile(join(MODEL, 'model.onnx'))
  const key = createHash('sha256').update(model).update(JSON.stringify(texts)).digest('hex')
  const file = join(CACHE, `${key}.f32`)
  const flat = existsSync(file) ? await cached(file) : await embedAndKeep(model, texts, file)
  return texts.map((_, i) => flat.subarray(i * DIMENSIONS, (i + 1) * DIMENSIONS))
}

/**
 * Returns the token states of texts, which must have their prefix, from the service's engine. They are cached as vectors
 * are.
 */
export async function evalTokenStates(texts: readonly string[], purpose: 'query' | 'passage'): Promise<readonly Int8Array[]> {
  const hash = createHash('sha256').update(purpose).update(JSON.stringify(texts))
  for (const file of ['model.onnx', 'token-states.f32']) hash.update(await readFile(join(MODEL, file)))
  const file = join(CACHE, `${hash.digest('hex')}.states.json`)
  if (existsSync(file))
    return (JSON.parse(await readFile(file, 'utf8')) as string[]).map((base64) => Int8Array.from(Buffer.from(base64, 'base64')))
  const clock = { now: () => new Date(), sleep: async () => undefined }
  await using engines = await openEmbeddedEngines({ modelDirectory: MODEL, log: silentLog, clock, ids: (prefix) => prefix })
  const call = { engineModel: 'e5-small-ar-en', requestId: 'eval', dimensions: null, purpose, withTokenStates: true } as const
  const states: Int8Array[] = []
  for (let at = 0; at < texts.length; at += BATCH) {
    const { tokenStates } = await engines.embedding.embed(call, texts.slice(at, at + BATCH), new AbortController().signal)
    states.push(...tokenStates!)
  }
  await mkdir(CACHE, { recursive: true })
  const partial = `${file}.${process.pid}`
  await writeFile(partial, JSON.stringify(states.map((each) => Buffer.from(each).toString('base64'))))
  await rename(partial, file)
  return states
}

async function cached(file: string): Promise<Float32Array> {
  const bytes = await readFile(file)
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}

async function embedAndKeep(model: Buffer, texts: readonly string[], file: string): Promise<Float32Array> {
  const json = async (name: string) => JSON.parse(await readFile(join(MODEL, name), 'utf8')) as object
  const tokenizer = new Tokenizer(await json('tokenizer.json'), await json('tokenizer_config.json'))
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1 })
  const flat = new Float32Array(texts.length * DIMENSIONS)
  for (const [i, text] of texts.entries()) {
    const all = tokenizer.encode(text).ids
    const ids = all.length > MAX_TOKENS ? [...all.slice(0, MAX_TOKENS - 1), END_OF_TEXT] : all
    const shape = [1, ids.length]
    const result = await session.run(
      {
        input_ids: new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), shape),
        attention_mask: new ort.Tensor('int64', new BigInt64Array(ids.length).fill(1n), shape),
      },
      ['neutral_embedding'],
    )
    flat.set(result.neutral_embedding!.data as Float32Array, i * DIMENSIONS)
  }
  await session.release()
  await mkdir(CACHE, { recursive: true })
  // Write to another name and rename, so that an interrupted run leaves no partial file.
  const partial = `${file}.${process.pid}`
  await writeFile(partial, new Uint8Array(flat.buffer))
  await rename(partial, file)
  return flat
}
