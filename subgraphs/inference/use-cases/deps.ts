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

/**
 * The ports of inference, and what is the same for all of its parts. A function that works with these alone takes
 * `Ports`.
 */
export interface Ports {
  readonly catalog: Catalog
  /** By the engine's name in the catalog; every engine that is on is here. */
  readonly engines: ReadonlyMap<string, Engine>
  /** May be away for a while; what needs none of it goes on. */
  readonly collections: Collections
  readonly files: StoreFiles
  readonly audio: AudioReader
  readonly billing: Billing
  readonly knowledge: Knowledge
  /** The way to the addresses of images. */
  readonly egress: Pick<Egress, 'mayAsk' | 'mayReach' | 'fetch'>
  /** The way to the tools of MCP servers. */
  readonly mcp: McpClients
  /** Runs callers' schemas. */
  readonly schemas: SchemaJudge
  /** Seals what callers trust the service with. */
  readonly secrets: SealedTexts
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** What one process keeps between calls. A function says by name which of them it takes: `With<'limits' | 'load'>`. */
export interface Services {
  readonly principals: Principals
  readonly limits: CallLimits
  readonly load: LoadShedder
  /** Told of what waits for billing. */
  readonly queue: Pick<QueueWatch, 'wait'>
  readonly holder: Holder
  /** Work that outlives its call. */
  readonly background: Background
  readonly keyedCalls: KeyedCalls
  /** Tells which runs have ended. */
  readonly runEnds: RunEnds
  readonly runs: AgentRuns
  readonly workflowRuns: WorkflowRuns
}

export type With<Name extends keyof Services> = Ports & Pick<Services, Name>
/** To reserve money and charge it. */
export type HoldDeps = With<'queue' | 'holder' | 'background'>
/** To make a billed call under its key's limits, by the rules in force. */
export type CallDeps = HoldDeps & With<'principals' | 'limits' | 'load'>
/** To make calls that are paid once, however often they are repeated. */
export type KeyedDeps = CallDeps & With<'keyedCalls'>
/** To run agents and workflows. */
export type RunDeps = KeyedDeps & With<'runEnds'>
/** What resolvers work with. */
export type ServedDeps = RunDeps & With<'runs' | 'workflowRuns'>

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
  /**
   * Absent for a call without an idempotency key, and for each of the calls that make up a run: the record is of one
   * answer.
   */
  readonly record?: CallRecord
}

/** The same after admission, when the caller is known to be an organization's. */
export interface CallContext extends BillingContext {
  /** Hears what each hold of the call was resolved with. */
  readonly spent?: (usage: Usage) => void
  readonly record?: CallRecord
}

/**
 * Where a call with an idempotency key writes down how far it is, so that a crash at any moment leaves one charge and
 * one outcome.
 */
export interface CallRecord {
  /** Whoever goes on with the call asks the engine again, so that a call which is cut now costs nothing. */
  readonly isFreeWhenCut: boolean
  /** Before money is held: from here on the call may be charged. @throws {KisError} nothing may be held. */
  holding(holdId: string): Promise<void>
  /** What was charged at the end of the newest hold; null: billing has not said so. */
  holdEnded(charged: bigint | null): void
  /**
   * Before the charge: what was used, and the answer without its cost.
   * @throws {KisError} the call is another's, and nothing may be charged.
   */
  answered(usage: Usage, value: object): Promise<void>
}

/** Who takes a turn; undefined: a part of the service. */
export function findOrganizationId({ caller }: Pick<AskContext, 'caller'>): string | undefined {
  return caller && 'organizationId' in caller ? caller.organizationId : undefined
}

export function getEngine({ engines }: Pick<Ports, 'engines'>, model: Model): Engine {
  const engine = engines.get(model.engine)
  if (!engine) throw new Error(`no engine ${model.engine} was opened`)
  return engine
}
