import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import { FileChecks } from '../../common/adapters/sqlite/full-checks.ts'
import { bytePaths } from '../../common/bytes/byte-paths.ts'
import type { Principal } from '../../common/identity/principal.ts'
import { SealedTexts } from '../../common/identity/sealed-text.ts'
import type { DocumentStore } from '../../common/ports/document-store.ts'
import { type Clock, systemClock } from '../../common/process/clock.ts'
import { idSource } from '../../common/process/ids.ts'
import { type Log, silentLog } from '../../common/process/log.ts'
import { Tasks } from '../../common/process/tasks.ts'
import { noMetrics } from '../../common/telemetry/metrics.ts'
import { judge } from '../adapters/ajv/judging.ts'
import { parseCatalog } from '../domain/catalog/catalog-file.ts'
import { buildCatalog } from '../domain/catalog.ts'
import { Breaker } from '../domain/engines/breaker.ts'
import { RetryBudget } from '../domain/engines/retry-budget.ts'
import type { AudioReader } from '../ports/audio-reader.ts'
import { SchemaFailure, type SchemaJudge } from '../ports/schema-judge.ts'
import type { TokenDecoder } from '../ports/token-decoder.ts'
import { CallLimits } from '../use-cases/calls/call-limits.ts'
import { LoadShedder } from '../use-cases/calls/load-shedding.ts'
import { Principals } from '../use-cases/calls/principals.ts'
import { OwnRates } from '../use-cases/calls/rate-usage.ts'
import type { RequestContext, RunDeps } from '../use-cases/deps.ts'
import { KeyedCalls } from '../use-cases/idempotency/keyed-calls.ts'
import { ZeroUsage } from '../use-cases/money/zero-usage.ts'
import { Background } from '../use-cases/runs/background.ts'
import { SoleHolder, UNKNOWN_HOLDER } from '../use-cases/runs/holder.ts'
import { PoisonGuard } from '../use-cases/runs/poison-guard.ts'
import { openRunEnds } from '../use-cases/runs/run-ends.ts'
import { openCollections } from '../use-cases/tables.ts'
import { FakeBilling } from './fake-billing.ts'
import { FakeEgress } from './fake-egress.ts'
import { FakeKnowledge } from './fake-knowledge.ts'
import { FakeMcp } from './fake-mcp.ts'
import { ScriptedEngine } from './scripted-engine.ts'

/** Prices of 1 and 2 USD per million tokens: an input token costs 1,000 nano-USD, an output token 2,000. */
export const CATALOG = `
engines:
  near: { kind: embedded, badge: local }
  far: { kind: openai, base_url: "http://vendor.test/v1", api_key: "k", badge: cloud }
  off: { kind: openai, base_url: "http://vendor.test/v1", api_key: "\${ABSENT}", badge: cloud }
  ranks: { kind: rerank, protocol: cohere, base_url: "http://vendor.test/v2", api_key: "k", badge: cloud }
models:
  - { id: rank, engine: ranks, engine_model: vendor-rank, kind: rerank, price: { search: "2" } }
  - { id: rank-tokens, engine: ranks, kind: rerank, fallbacks: [rank], price: { input: "0.05" } }
  - { id: chat, engine: far, engine_model: vendor-chat, kind: chat, supports: [vision, tools, response_schema], context_window: 1000, max_output_tokens: 100, image_tokens: 50, price: { input: "1", cached_input: "0.5", output: "2" } }
  - { id: plain, engine: near, kind: chat, max_output_tokens: 100, price: { input: "1", output: "2" } }
  - { id: careful, engine: far, kind: chat, max_output_tokens: 100, price: { input: "1", output: "2" }, fallbacks: [chat, plain] }
  - { id: embed, engine: near, kind: embedding, dimensions: 4, context_window: 12, query_prefix: "query: ", passage_prefix: "passage: ", cosine_spread: 0.03, price: { input: "1" } }
  - { id: embed-far, engine: far, kind: embedding, supports: [token_input, dimensions], dimensions: 4, mark_tokens: 0, price: { input: "1" } }
  - { id: speech, engine: far, engine_model: vendor-speech, kind: transcription, price: { audio: "0.006" } }
  - { id: speech-live, engine: far, engine_model: vendor-speech, kind: transcription, supports: [streaming], price: { audio: "0.006" } }
  - { id: speech-tokens, engine: far, kind: transcription, price: { audio: "0.006", input: "6", output: "10" } }
  - { id: unplugged, engine: off, kind: chat, max_output_tokens: 100, price: { input: "1", output: "2" } }
`

/** Longer than any test. */
const FIRST_BYTE_MS = 300_000

export const somebody: Principal = {
  organizationId: 'org_a',
  apiKeyId: 'key_a',
  scopes: ['inference', 'knowledge:read'],
  modelAllowlist: null,
  residencyPolicy: 'unrestricted',
  requestsPerMinute: null,
  tokensPerMinute: null,
  revision: 0,
  ancestors: [],
  rotations: 0,
  plan: {
    code: 'p',
    storageBytes: null,
    vectors: null,
    maxFileBytes: 1,
    requestsPerMinute: null,
    tokensPerMinute: null,
    concurrency: 1_000,
  },
}

/** Reads `wav 2500 …` or `ogg 2500 …` as 2,500 ms of audio, `wav ? …` as audio of unknown length, and nothing else. */
const fakeAudioReader: AudioReader = {
  async read(bytes) {
    const [format, duration] = Buffer.from(bytes).toString().split(' ', 2)
    return format === 'wav' || format === 'ogg' ? { format, durationMs: duration === '?' ? null : Number(duration) } : null
  },
}

/** Reads a token as the character of that code; above those of Unicode there are none. */
const fakeTokenDecoder: TokenDecoder = {
  async decode(tokens) {
    const unknownAt = tokens.findIndex((token) => token > 0x10ffff)
    return unknownAt < 0 ? { text: String.fromCodePoint(...tokens) } : { unknownAt }
  },
}

/** Without threads. */
const schemas: SchemaJudge = {
  check: async (_organizationId, schema) => void judged(JSON.stringify(schema), null),
  judge: async (_organizationId, schema, json) => judged(JSON.stringify(schema), json),
}

function judged(schema: string, value: string | null) {
  const verdict = judge({ schema, value })
  if ('failure' in verdict) throw new SchemaFailure(verdict.failure)
  return verdict.faults
}

interface PartsOptions {
  readonly balance?: bigint
  readonly catalog?: string
  /** Of an earlier process, after a crash. */
  readonly billing?: FakeBilling
  readonly store?: Pick<DocumentStore, 'collection'>
  readonly clock?: Clock
  /** No other process uses the store. */
  readonly isExclusive?: boolean
  readonly log?: Log
}

/** Use cases over a wallet and engines in memory. */
export function parts({
  balance = 1_000_000_000n,
  catalog = CATALOG,
  billing = new FakeBilling(balance),
  store = new MemoryDocumentStore(),
  clock = systemClock,
  isExclusive = true,
  log = silentLog,
}: PartsOptions = {}) {
  const knowledge = new FakeKnowledge()
  const near = new ScriptedEngine()
  const far = new ScriptedEngine()
  const ranks = new ScriptedEngine()
  const egress = new FakeEgress()
  const mcp = new FakeMcp()
  const file = parseCatalog(catalog, 'catalog', {})
  const engines = new Map(
    Object.entries({ near, far, ranks }).map(([name, { chat, embedding, transcription, rerank }]) => [
      name,
      { chat, embedding, transcription, rerank, breaker: new Breaker(), retries: new RetryBudget(), firstByteMs: FIRST_BYTE_MS },
    ]),
  )
  const collections = openCollections(store)
  const sole = isExclusive ? new SoleHolder({ collections, billing, clock, log: silentLog }) : null
  const built = buildCatalog(file)
  const base = {
    catalog: built,
    engines,
    collections,
    holder: sole ?? UNKNOWN_HOLDER,
    files: new FileChecks([]),
    audio: fakeAudioReader,
    tokens: fakeTokenDecoder,
    egress,
    mcp,
    schemas,
    secrets: new SealedTexts(new Uint8Array(32)),
    billing,
    principals: new Principals(billing, clock),
    knowledge,
    background: new Background(),
    bytePaths: bytePaths(clock, new Uint8Array(32)),
    limits: new CallLimits(new OwnRates(systemClock), () => 1),
    queue: { wait: () => () => undefined },
    zeroUsage: new ZeroUsage(built, clock, log, noMetrics),
    load: new LoadShedder(() => ({ lagMs: 0, utilisation: 0, memory: 0 })),
    // These tests need no long pauses.
    clock: { ...clock, sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(1, signal) },
    ids: idSource(systemClock),
    log,
  }
  const runEnds = openRunEnds(collections, silentLog)
  const deps: RunDeps = { ...base, keyedCalls: new KeyedCalls(base, isExclusive), runEnds }
  /** What runs of one process are made with. */
  const tasks = new Tasks({ part: 'inference', leases: collections.taskLeases, isExclusive, clock: base.clock, log, metrics: noMetrics })
  const ofRuns = { opened: Promise.resolve(), isExclusive, poisonGuard: new PoisonGuard(base.clock), tasks }
  return { deps, ofRuns, sole, billing, knowledge, near, far, ranks, store, egress, mcp }
}

export function createRequestContext(caller: RequestContext['caller'] = somebody, signal = new AbortController().signal): RequestContext {
  return { caller, requestId: 'req_1', signal }
}
