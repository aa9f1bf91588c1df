import type { Egress } from '../../common/egress/egress.ts'
import type { Caller } from '../../common/identity/principal.ts'
import type { SealedTexts } from '../../common/identity/sealed-text.ts'
import type { StoreFiles } from '../../common/ports/store-files.ts'
import type { Clock } from '../../common/process/clock.ts'
import type { IdSource } from '../../common/process/ids.ts'
import type { Log } from '../../common/process/log.ts'
import type { QueueWatch } from '../../common/server/queue-watch.ts'
import type { Catalog, Model } from '../domain/catalog.ts'
import type { Breaker } from '../domain/engines/breaker.ts'
import type { RetryBudget } from '../domain/engines/retry-budget.ts'
import type { Usage } from '../domain/tokens/usage.ts'
import type { AudioReader } from '../ports/audio-reader.ts'
import type { Billing, BillingContext } from '../ports/billing.ts'
import type { ChatEngine, EmbeddingEngine, TranscriptionEngine } from '../ports/engines.ts'
import type { Knowledge } from '../ports/knowledge.ts'
import type { McpClients } from '../ports/mcp.ts'
import type { SchemaJudge } from '../ports/schema-judge.ts'
import type { AgentRuns } from './agents/agent-runs.ts'
import type { CallLimits } from './calls/call-limits.ts'
import type { LoadShedder } from './calls/load-shedding.ts'
import type { Principals } from './calls/principals.ts'
import type { KeyedCalls } from './idempotency/keyed-calls.ts'
import type { Background } from './runs/background.ts'
import type { Holder } from './runs/holder.ts'
import type { RunEnds } from './runs/run-ends.ts'
import type { Collections } from './tables.ts'
import type { WorkflowRuns } from './workflows/workflow-runs.ts'

export interface Deps {
  readonly catalog: Catalog
  /** By the engine's name in the catalog; every engine that is on is here. */
  readonly engines: ReadonlyMap<string, Engine>
  /** May be away for a while; what needs none of it goes on. */
  readonly collections: Collections
  readonly files: StoreFiles
  readonly audio: AudioReader
  readonly billing: Billing
  readonly principals: Principals
  readonly knowledge: Knowledge
  readonly background: Background
  /** The way to the addresses of images. */
  readonly egress: Pick<Egress, 'mayAsk' | 'mayReach' | 'fetch'>
  /** The way to the tools of others. */
  readonly mcp: McpClients
  /** Whatever runs by a caller's schema. */
  readonly schemas: SchemaJudge
  /** What callers trust us with. */
  readonly secrets: SealedTexts
  readonly limits: CallLimits
  readonly load: LoadShedder
  /** Told of what waits for billing. */
  readonly queue: Pick<QueueWatch, 'wait'>
  readonly holder: Holder
  readonly keyedCalls: KeyedCalls
  /** Tells which runs have ended. */
  readonly runEnds: RunEnds
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** What resolvers work with. */
export interface ServedDeps extends Deps {
  readonly runs: AgentRuns
  readonly workflowRuns: WorkflowRuns
}

export interface Engine {
  readonly chat: ChatEngine
  readonly embedding: EmbeddingEngine
  /** Null for kinds of engines without speech; the catalog names no speech model of theirs. */
  readonly transcription: TranscriptionEngine | null
  readonly breaker: Breaker
  readonly retries: RetryBudget
  /** Longest wait for the first piece of a streamed answer. */
  readonly firstByteMs: number
}

/** Who asks, under which request id, and the signal that says when nobody waits any more. */
export interface AskContext extends Omit<BillingContext, 'caller'> {
  readonly caller: Caller | null
  /** Absent for a call without an idempotency key, and for each of the calls that make up a run: the record is of one answer. */
  readonly record?: CallRecord
}

/** The same after admission, when the caller is known to be an organization's. */
export interface CallContext extends BillingContext {
  /** Hears what each hold of the call was resolved with. */
  readonly spent?: (usage: Usage) => void
  readonly record?: CallRecord
}

/** Where a call with an idempotency key writes down how far it is, so that a crash at any moment leaves one charge and one outcome. */
export interface CallRecord {
  /** Whoever goes on with the call asks the engine again, so that a call which is cut now costs nothing. */
  readonly isFreeWhenCut: boolean
  /** Before money is held: from here on the call may be charged. @throws {KisError} nothing may be held. */
  holding(holdId: string): Promise<void>
  /** What was charged at the end of the newest hold; null: billing has not said so. */
  holdEnded(charged: bigint | null): void
  /** Before the charge: what was used, and the answer without its cost. @throws {KisError} the call is another's, and nothing may be charged. */
  answered(usage: Usage, value: object): Promise<void>
}

/** Who takes a turn; undefined: a part of the service. */
export function organizationOf({ caller }: Pick<AskContext, 'caller'>): string | undefined {
  return caller && 'organizationId' in caller ? caller.organizationId : undefined
}

export function engineOf({ engines }: Deps, model: Model): Engine {
  const engine = engines.get(model.engine)
  if (!engine) throw new Error(`no engine ${model.engine} was opened`)
  return engine
}
