import '../../../subgraphs/inference/adapters/embedded/no-telemetry.ts'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { cpus, homedir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../../subgraphs/common/process/log.ts'
import { openEmbeddedEngines } from '../../../subgraphs/inference/adapters/embedded/engines.ts'

const ROOT = join(import.meta.dirname, '../../..')
const MODEL = join(ROOT, 'models/e5-small-ar-en')
/** What vectors and token embeddings depend on besides the model and what runs it. */
const SOURCES = 'subgraphs/inference/adapters/embedded/{,tokenizer/}*.ts'
/** `npm ci` empties `node_modules`. */
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-eval')
const DATA = join(ROOT, '../shared/eval/xquad-dev.json')
const RUNTIME_VERSION: string = createRequire(import.meta.url)('onnxruntime-node/package.json').version
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

/** One of each for every text, as the engine gives them. */
export interface EvalEmbeddings {
  readonly vectors: readonly Float32Array[]
  readonly tokenStates: readonly Int8Array[]
}

/**
 * Embeds texts, which must have their prefix, with the service's engine. What it gives is kept, once a machine, because
 * to embed all takes minutes. The key is the checksum of all that it depends on: the texts, the model, our sources, the
 * runtime and the processor.
 */
export async function evalEmbeddings(texts: readonly string[], purpose: 'query' | 'passage'): Promise<EvalEmbeddings> {
  const hash = createHash('sha256').update(JSON.stringify([purpose, texts, cpus()[0]?.model, RUNTIME_VERSION]))
  const sources = (await Array.fromAsync(glob(SOURCES, { cwd: ROOT }))).filter((name) => !name.endsWith('.test.ts')).sort()
  const model = ['model.onnx', 'vocabulary.bin', 'token-states.f32', 'config.json'].map((name) => join(MODEL, name))
  for (const name of [...model, ...sources.map((source) => join(ROOT, source))]) hash.update(await readFile(name))
  const file = join(CACHE, `${hash.digest('hex')}.json`)
  if (!existsSync(file)) await embedAndCache(texts, purpose, file)
  const { vectors, states } = JSON.parse(await readFile(file, 'utf8')) as CachedEmbeddings
  return {
    vectors: vectors.map((base64) => new Float32Array(bytesOf(base64).buffer)),
    tokenStates: states.map((base64) => new Int8Array(bytesOf(base64).buffer)),
  }
}

/** Base64 of the bytes of each. */
interface CachedEmbeddings {
  readonly vectors: readonly string[]
  readonly states: readonly string[]
}

const bytesOf = (base64: string) => Uint8Array.from(Buffer.from(base64, 'base64'))
const base64Of = ({ buffer, byteOffset, byteLength }: Float32Array | Int8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64')

async function embedAndCache(texts: readonly string[], purpose: 'query' | 'passage', file: string): Promise<void> {
  const clock = { now: () => new Date(), sleep: async () => undefined }
  await using engines = await openEmbeddedEngines({ modelDirectory: MODEL, log: silentLog, clock })
  const call = { engineModel: 'e5-small-ar-en', requestId: 'eval', dimensions: null, purpose, withTokenEmbeddings: true } as const
  const cached: { vectors: string[]; states: string[] } = { vectors: [], states: [] }
  for (let at = 0; at < texts.length; at += BATCH) {
    const { vectors, tokenEmbeddings } = await engines.embedding.embed(call, texts.slice(at, at + BATCH), new AbortController().signal)
    cached.vectors.push(...vectors.map(base64Of))
    cached.states.push(...tokenEmbeddings!.map(base64Of))
  }
  await mkdir(CACHE, { recursive: true })
  // Write to another name and rename, so that an interrupted run leaves no partial file.
  const partial = `${file}.${process.pid}`
  await writeFile(partial, JSON.stringify(cached))
  await rename(partial, file)
}
