import { createHash } from 'node:crypto'
import { FileChecks } from '../../subgraphs/common/adapters/sqlite/full-checks.ts'
import { bytePaths } from '../../subgraphs/common/bytes/byte-paths.ts'
import { Egress } from '../../subgraphs/common/egress/egress.ts'
import { KisError, ModelNotFound, NotFound } from '../../subgraphs/common/errors.ts'
import { EventLog, type Telling } from '../../subgraphs/common/events/event-log.ts'
import type { Principal } from '../../subgraphs/common/identity/principal.ts'
import type { LinkContext } from '../../subgraphs/common/link/link.ts'
import type { DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import type { Accounts } from '../../subgraphs/knowledge/ports/accounts.ts'
import type { BlobStore } from '../../subgraphs/knowledge/ports/blob-store.ts'
import type { ChunkIndex } from '../../subgraphs/knowledge/ports/chunk-index.ts'
import { type DocumentParser, type ParsedDocument, ParseFailure } from '../../subgraphs/knowledge/ports/document-parser.ts'
import type { EmbeddingModel, Inference, SpokenSegment } from '../../subgraphs/knowledge/ports/inference.ts'
import { knowledgeStore } from '../../subgraphs/knowledge/ports/knowledge-store.ts'
import type { PageBilling } from '../../subgraphs/knowledge/ports/page-billing.ts'
import type { PageRecogniser } from '../../subgraphs/knowledge/ports/page-recogniser.ts'
import { CollectionDigests } from '../../subgraphs/knowledge/use-cases/collection-digests.ts'
import type { Deps } from '../../subgraphs/knowledge/use-cases/deps.ts'
import { RecordRoom } from '../../subgraphs/knowledge/use-cases/record-room.ts'

export const DIMENSIONS = 16

export const principal: Principal = {
  organizationId: 'org_1',
  apiKeyId: 'key_1',
  scopes: ['knowledge:read', 'knowledge:write'],
  modelAllowlist: null,
  residencyPolicy: 'unrestricted',
  revision: 0,
  ancestors: [],
  rotations: 0,
  requestsPerMinute: null,
  tokensPerMinute: null,
  plan: {
    code: 'test',
    storageBytes: 1_000_000,
    vectors: 1_000,
    maxFileBytes: 500_000,
    requestsPerMinute: null,
    tokensPerMinute: null,
    concurrency: 10,
  },
}

export function createContext(caller: Principal = principal): LinkContext {
  return { caller, requestId: 'req_1', signal: new AbortController().signal }
}

/** A clock that only a test or a `sleep` advances. */
export class ManualClock implements Clock {
  ms = Date.UTC(2026, 0, 1)
  now() {
    return new Date(this.ms)
  }
  async sleep(ms: number) {
    this.ms += ms
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** A parser for tests of ingestion. Each line of the text is a paragraph. Text that begins with `%corrupt` fails. */
export const plainParser: DocumentParser = {
  sniff: () => 'text/plain',
  async parse(bytes): Promise<ParsedDocument> {
    const text = Buffer.from(bytes as Uint8Array).toString()
    if (text.startsWith('%corrupt')) throw new ParseFailure('corrupt', 'It cannot be read.')
    const blocks = [...text.matchAll(/[^\n]+/g)].map((match) => ({
      kind: 'paragraph' as const,
      charStart: match.index,
      charEnd: match.index + match[0].length,
    }))
    return { mediaType: 'text/plain', text, blocks, pageCount: null, warnings: [], unread: [], hasFiles: false }
  },
  async *unpack() {},
  async [Symbol.asyncDispose]() {},
}

/** Finds no text on any page. */
const blindRecogniser: PageRecogniser = {
  async *recognise({ pages }) {
    for (const page of pages) yield { page, confidence: 0, paragraphs: [] }
  },
  async [Symbol.asyncDispose]() {},
}

export interface FakeHold {
  state: 'open' | 'settled' | 'expired'
  charged: number
  /** The tokens that the last call reported. They are charged when the hold expires. */
  known: number
}

/** Embeds by hashing words, and records holds as billing does. It outlives the simulated processes of a test. */
export class FakeInference implements Inference {
  /** Requests that were counted. */
  requests = 0
  readonly model: EmbeddingModel = {
    id: 'embed',
    dimensions: DIMENSIONS,
    maxTokens: 512,
    overheadTokens: 2,
    cosineSpread: 0.05,
    calibration: null,
  }
  /** Another model, whose vectors have another length. */
  readonly otherModel: EmbeddingModel = { ...this.model, id: 'embed-new', dimensions: 2 * DIMENSIONS, overheadTokens: 1 }
  readonly holds = new Map<string, FakeHold>()
  /** How often each passage was embedded. */
  readonly embedded = new Map<string, number>()
  /** Runs before each batch. An error that it throws is the engine's failure. */
  beforeBatch: (batch: number) => void | Promise<void> = () => {}
  batches = 0

  async countRequest() {
    this.requests++
  }

  async embeddingModel(id: string, { caller }: { readonly caller: Principal }) {
    const model = [this.model, this.otherModel].find((one) => one.id === id)
    if (!model || caller.modelAllowlist?.includes(id) === false) throw new ModelNotFound(id)
    return model
  }
  /** The agents of each collection. */
  readonly agents = new Map<string, readonly string[]>()
  async agentsOf(collectionId: string) {
    return this.agents.get(collectionId) ?? []
  }
  async countTokens(_modelId: string, texts: readonly string[]) {
    return texts.map(countWords)
  }
  async embedQuery(modelId: string, text: string) {
    return { vector: this.#embed(modelId, text), cost: 0n }
  }
  #embed(modelId: string, text: string): Float32Array {
    const vector = createVector(text)
    return modelId === this.otherModel.id ? Float32Array.from([...vector.map(() => 0), ...vector]) : vector
  }
  /** A token costs 1,000 nano-USD; the wallet has `balance` tokens. */
  balance = 1_000_000
  async quoteEmbedding(_modelId: string, tokens: number) {
    return { amount: BigInt(tokens) * 1_000n, isCovered: tokens <= this.balance, perMillion: 1_000_000_000n }
  }
  /** Scores of passages, by what they contain; an error is the engine's failure. */
  rerank: ((text: string) => number) | KisError = () => 0
  /** What a chat model makes of a query; an error is the engine's failure. */
  rewritten: string | KisError = ''
  async rewriteQuery() {
    if (this.rewritten instanceof KisError) throw this.rewritten
    return { query: this.rewritten, cost: 11n }
  }
  /** What a chat model asks about a passage; an error is the engine's failure. */
  suggest: (text: string, languages: readonly string[]) => readonly { readonly question: string; readonly phrase: string }[] = () => []
  async suggestQuestions({ passages }: Parameters<Inference['suggestQuestions']>[0]) {
    const questions = passages.flatMap(({ text, languages }, index) =>
      this.suggest(text, languages).map((each) => ({ passage: index, ...each })),
    )
    return { questions, cost: 13n }
  }
  async rerankModel(id: string, { caller }: { readonly caller: Principal }) {
    if (!id.startsWith('rank') || caller.modelAllowlist?.includes(id) === false) throw new ModelNotFound(id)
    return { id }
  }
  async rerankPassages(modelId: string, _query: string, texts: readonly string[], context: { readonly caller: Principal }) {
    await this.rerankModel(modelId, context)
    const { rerank } = this
    if (rerank instanceof KisError) throw rerank
    const results = texts.map((text, index) => ({ index, score: rerank(text) })).sort((a, b) => b.score - a.score)
    return { results, cost: 7n }
  }
  /** What is said in every file; an error is the engine's failure. */
  spoken: readonly SpokenSegment[] | KisError = []
  /** The answers to steps. Each was charged once. */
  readonly steps = new Map<string, readonly SpokenSegment[]>()
  /** How often an engine was asked to transcribe. */
  transcribed = 0
  async transcriptionModel(id: string, { caller }: { readonly caller: Principal }) {
    if (!id.startsWith('speech') || caller.modelAllowlist?.includes(id) === false) throw new ModelNotFound(id)
    return { id }
  }
  async transcribe(modelId: string, _audio: Uint8Array, context: { readonly caller: Principal; readonly step: string }) {
    await this.transcriptionModel(modelId, context)
    const there = this.steps.get(context.step)
    if (there) return there
    this.transcribed++
    const { spoken } = this
    if (spoken instanceof KisError) throw spoken
    this.steps.set(context.step, spoken)
    return spoken
  }
  async openEmbedding(_modelId: string, tokens: number) {
    if (tokens > this.balance) throw new KisError('insufficient_quota', 'The wallet has too little.')
    const id = `hold_${this.holds.size}`
    this.holds.set(id, { state: 'open', charged: 0, known: 0 })
    return id
  }
  async embedPassages({ holdId, modelId, texts, tokensBefore }: Parameters<Inference['embedPassages']>[0]) {
    const hold = this.holds.get(holdId)
    if (hold?.state !== 'open') throw new NotFound('hold', holdId)
    hold.known = tokensBefore
    await this.beforeBatch(++this.batches)
    for (const text of texts) this.embedded.set(text, (this.embedded.get(text) ?? 0) + 1)
    const { overheadTokens } = modelId === this.otherModel.id ? this.otherModel : this.model
    const tokens = texts.reduce((sum, text) => sum + countWords(text) + overheadTokens, 0)
    return { vectors: texts.map((text) => this.#embed(modelId, text)), tokens }
  }
  async closeEmbedding(holdId: string, tokens: number) {
    const hold = this.holds.get(holdId)
    if (!hold) throw new NotFound('hold', holdId)
    if (hold.state === 'open') Object.assign(hold, { state: 'settled', charged: tokens })
    return BigInt(hold.charged) * 1_000n
  }

  /** Expires abandoned holds, as billing does. */
  expireHolds(): void {
    for (const hold of this.holds.values()) if (hold.state === 'open') Object.assign(hold, { state: 'expired', charged: hold.known })
  }
  get charged(): number {
    return [...this.holds.values()].reduce((sum, hold) => sum + hold.charged, 0)
  }
}

/** Records holds of pages as billing does, within a quota. It outlives the simulated processes of a test. */
export class FakePageBilling implements PageBilling {
  readonly holds = new Map<string, { state: 'open' | 'settled' | 'expired'; pages: number }>()
  quota = Number.POSITIVE_INFINITY

  /** The pages of open and settled holds. */
  get used(): number {
    return [...this.holds.values()].reduce((sum, { state, pages }) => sum + (state === 'expired' ? 0 : pages), 0)
  }
  get charged(): number {
    return [...this.holds.values()].reduce((sum, { state, pages }) => sum + (state === 'settled' ? pages : 0), 0)
  }
  async hold(pages: number) {
    if (this.used + pages > this.quota) throw new KisError('insufficient_quota', 'The plan allows no more pages.')
    const id = `hold_${this.holds.size}`
    this.holds.set(id, { state: 'open', pages })
    return id
  }
  async renew(id: string) {
    return this.holds.get(id)?.state === 'open'
  }
  async settle(id: string, pages: number) {
    const hold = this.holds.get(id)
    if (hold?.state === 'open') Object.assign(hold, { state: 'settled', pages })
    return hold?.state === 'settled'
  }
  expireHolds(): void {
    for (const hold of this.holds.values()) if (hold.state === 'open') hold.state = 'expired'
  }
}

export function countWords(text: string): number {
  return text.split(/\s+/).filter(Boolean).length
}

export function createVector(text: string): Float32Array {
  const vector = new Float32Array(DIMENSIONS)
  for (const word of text.toLowerCase().split(/\W+/).filter(Boolean)) vector[createHash('md5').update(word).digest()[0]! % DIMENSIONS]! += 1
  const length = Math.hypot(...vector) || 1
  return vector.map((value) => value / length)
}

/** The error of every call after the process has crashed. */
export class Crash extends Error {}

/**
 * The life of one simulated process. It crashes at its `n`-th call of a port, either before the call takes effect or
 * before the answer returns.
 */
export class Life {
  #calls = 0
  #dead = false
  readonly #diesAt: number
  readonly #effect: 'failed' | 'lost answer'
  /** Runs before each call, with the call's number and name. The call waits for it. */
  onCall: (call: number, name: string) => unknown = () => {}

  constructor(diesAt = Number.POSITIVE_INFINITY, effect: 'failed' | 'lost answer' = 'failed') {
    this.#diesAt = diesAt
    this.#effect = effect
  }

  get isDead(): boolean {
    return this.#dead
  }

  /** Ends the process. It makes no further calls. */
  end(): never {
    this.#dead = true
    throw new Crash('the process ended')
  }

  /** Returns a port as this process sees it. */
  sees<T extends object>(port: T, name: string): T {
    return new Proxy(port, {
      get: (target, key) => {
        const member = Reflect.get(target, key, target)
        if (typeof member !== 'function' || typeof key !== 'string' || key === 'sniff') return member
        return async (...args: unknown[]) => {
          if (this.#dead) throw new Crash(`${name}.${key}`)
          const call = ++this.#calls
          await this.onCall(call, `${name}.${key}`)
          if (this.#dead) throw new Crash(`${name}.${key}`)
          if (call === this.#diesAt) {
            this.#dead = true
            if (this.#effect === 'lost answer') await member.apply(target, args)
            throw new Crash(`${name}.${key}`)
          }
          return member.apply(target, args)
        }
      },
    })
  }
}

export interface World {
  readonly documents: DocumentStore
  readonly blobs: BlobStore
  readonly index: ChunkIndex
  readonly inference: Inference
  readonly clock: Clock
  readonly parser?: DocumentParser
  readonly egress?: Egress
  readonly pageBilling?: PageBilling
  readonly recogniser?: PageRecogniser
  readonly accounts?: Accounts
  readonly ingestionWeights?: ReadonlyMap<string, number>
}

/** Returns the dependencies of a knowledge process, on stores that outlive it. */
export function depsOn(world: World, life = new Life()): Deps {
  const store = knowledgeStore(world.documents)
  return {
    store: {
      collections: life.sees(store.collections, 'collections'),
      files: life.sees(store.files, 'files'),
      blobs: life.sees(store.blobs, 'blobs'),
      uploads: life.sees(store.uploads, 'uploads'),
      sources: life.sees(store.sources, 'sources'),
      documents: life.sees(store.documents, 'documents'),
      sketches: life.sees(store.sketches, 'sketches'),
      usage: life.sees(store.usage, 'usage'),
      goldQuestions: store.goldQuestions,
      evaluations: life.sees(store.evaluations, 'evaluations'),
      evaluationWatches: life.sees(store.evaluationWatches, 'evaluationWatches'),
      indexMarks: store.indexMarks,
      reembeddings: life.sees(store.reembeddings, 'reembeddings'),
      events: store.events,
      eventHeads: store.eventHeads,
      taskLeases: store.taskLeases,
    },
    blobs: life.sees(world.blobs, 'bytes'),
    index: life.sees(world.index, 'index'),
    files: new FileChecks([]),
    parser: life.sees(world.parser ?? plainParser, 'parser'),
    recogniser: world.recogniser ?? blindRecogniser,
    inference: life.sees(world.inference, 'inference'),
    egress: world.egress ?? new Egress(),
    bytePaths: bytePaths(world.clock, new Uint8Array(32)),
    accounts: world.accounts ?? { findPrincipal: async () => principal },
    pageBilling: life.sees(world.pageBilling ?? new FakePageBilling(), 'pageBilling'),
    // Other processes read this log too, so it does not belong to one life.
    events: new EventLog<Telling>([store.documents, store.evaluations, store.reembeddings], store, silentLog),
    clock: world.clock,
    ids: idSource(world.clock),
    log: silentLog,
    digests: new CollectionDigests(store, world.clock),
    room: new RecordRoom(store, world.clock),
    ingestionWeights: world.ingestionWeights ?? new Map(),
    wake: () => {},
  }
}

/** A blob store in memory with a list of its keys. */
export class MemoryBlobStore implements BlobStore {
  readonly keys = new Map<string, Uint8Array>()
  async put(key: string, bytes: Uint8Array) {
    this.keys.set(key, bytes)
  }
  async get(key: string, range?: { readonly offset: number; readonly length: number }) {
    const bytes = this.keys.get(key)
    if (!bytes) return null
    return range ? bytes.slice(range.offset, range.offset + range.length) : bytes.slice()
  }
  async delete(key: string) {
    this.keys.delete(key)
  }
  async deleteAll(prefix: string) {
    for (const key of [...this.keys.keys()]) if (key.startsWith(prefix)) this.keys.delete(key)
  }
  async list(after: string, limit: number) {
    const keys = [...this.keys.keys()].filter((key) => key > after).sort()
    return keys.slice(0, limit).map((key) => ({ key, sizeBytes: this.keys.get(key)!.length }))
  }
  async ping() {}
}

/** The words of a paragraph. Two paragraphs do not fit into one chunk. */
export const PARAGRAPH_WORDS = 130

/** Returns a text of `count` paragraphs. Each becomes one chunk. */
export function paragraphs(count: number, about = 'matter'): string {
  return Array.from({ length: count }, (_, i) => Array.from({ length: PARAGRAPH_WORDS }, (_, w) => `${about}${i}x${w % 7}`).join(' ')).join(
    '\n\n',
  )
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

export function errorCode(error: unknown): string {
  return error instanceof KisError ? error.code : String(error)
}
