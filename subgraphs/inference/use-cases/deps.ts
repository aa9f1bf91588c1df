import type { BytePaths } from '../../common/bytes/byte-paths.ts'
import type { StoreFiles } from '../../common/documents/verify-files.ts'
import type { Egress } from '../../common/egress/egress.ts'
import type { Caller } from '../../common/identity/principal.ts'
import type { SealedTexts } from '../../common/identity/sealed-text.ts'
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
import type { EngineParts } from '../ports/engines.ts'
import type { Knowledge } from '../ports/knowledge.ts'
import type { McpClients } from '../ports/mcp.ts'
import type { SchemaJudge } from '../ports/schema-judge.ts'
import type { TokenDecoder } from '../ports/token-decoder.ts'
import type { AgentRuns } from './agents/agent-runs.ts'
import type { CallLimits } from './calls/call-limits.ts'
import type { LoadShedder } from './calls/load-shedding.ts'
import type { Principals } from './calls/principals.ts'
import type { KeyedCalls } from './idempotency/keyed-calls.ts'
import type { ZeroUsage } from './money/zero-usage.ts'
import type { Background } from './runs/background.ts'
import type { Holder } from './runs/holder.ts'
import type { RunEnds } from './runs/run-ends.ts'
import type { ChatStreams } from './streams/chat-streams.ts'
import type { Collections } from './tables.ts'
import type { WorkflowRuns } from './workflows/workflow-runs.ts'

/**
 * The ports of the inference subgraph and what all its parts share. A function that needs nothing else takes `Ports`.
 */
export interface Ports {
  readonly catalog: Catalog
  /** By the engine's name in the catalog. Contains every engine that is enabled. */
  readonly engines: ReadonlyMap<string, Engine>
  /** The store may be unavailable for a while; work that does not need it continues. */
  readonly collections: Collections
  readonly files: StoreFiles
  readonly audio: AudioReader
  readonly tokens: TokenDecoder
  readonly billing: Billing
  readonly knowledge: Knowledge
  /** Fetches the images at callers' addresses. */
  readonly egress: Pick<Egress, 'allows' | 'mayReach' | 'fetch'>
  /** Connects to MCP servers for their tools. */
  readonly mcp: McpClients
  /** Evaluates callers' schemas. */
  readonly schemas: SchemaJudge
  /** Seals the secrets that callers give to the service. */
  readonly secrets: SealedTexts
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
}

/** State that one process keeps between calls. A function names the parts that it takes: `With<'limits' | 'load'>`. */
export interface Services {
  readonly principals: Principals
  readonly limits: CallLimits
  readonly load: LoadShedder
  /** Notified of charges that wait for billing. */
  readonly queue: Pick<QueueWatch, 'wait'>
  readonly holder: Holder
  /** Work that continues after its call. */
  readonly background: Background
  readonly keyedCalls: KeyedCalls
  /** Signs the paths of long responses that are replayed. */
  readonly bytePaths: BytePaths
  readonly chatStreams: ChatStreams
  readonly zeroUsage: ZeroUsage
  /** Announces the runs that have ended. */
  readonly runEnds: RunEnds
  readonly runs: AgentRuns
  readonly workflowRuns: WorkflowRuns
}

export type With<Name extends keyof Services> = Ports & Pick<Services, Name>
/** The dependencies to reserve and charge money. */
export type HoldDeps = With<'queue' | 'holder' | 'background' | 'zeroUsage'>
/** The dependencies to make a billed call under its key's limits, by the rules in force. */
export type CallDeps = HoldDeps & With<'principals' | 'limits' | 'load'>
/** The dependencies to make calls that are paid once, however often they are repeated. */
export type KeyedDeps = CallDeps & With<'keyedCalls' | 'bytePaths'>
/** The dependencies to run agents and workflows. */
export type RunDeps = KeyedDeps & With<'runEnds'>
/** The dependencies of resolvers. */
export type ServedDeps = RunDeps & With<'runs' | 'workflowRuns' | 'chatStreams'>

export interface Engine extends EngineParts {
  readonly breaker: Breaker
  readonly retries: RetryBudget
  /** Longest wait for the first piece of a streamed answer. */
  readonly firstByteMs: number
}

/** The caller, the request id, and the signal that aborts when the caller no longer waits. */
export interface RequestContext extends Omit<BillingContext, 'caller'> {
  readonly caller: Caller | null
  /** As in `LinkContext`. */
  readonly isCut?: (() => boolean) | undefined
  /**
   * The record of one answer. Absent for a call without an idempotency key, and for a run as a whole: each step of a
   * run has its own.
   */
  readonly record?: CallRecord
}

/** An `AskContext` after admission: the caller belongs to an organization. */
export interface CallContext extends BillingContext {
  /** Called with the usage with which each hold of the call was resolved. */
  readonly spent?: (usage: Usage) => void
  readonly record?: CallRecord
}

/**
 * The progress of a call with an idempotency key, kept so that a crash at any moment leaves one charge and one outcome.
 */
export interface CallRecord {
  /** The process that continues the call asks the engine again, so a call that is cut now costs nothing. */
  readonly isFreeWhenCut: boolean
  /**
   * Called before money is held: from here on the call may be charged.
   * @throws {KisError} another process has the call, or it cannot be recorded; no money may be held.
   */
  holding(holdId: string): Promise<void>
  /** Called at the end of the newest hold with its charge in nano-USD, or null when billing has not reported it. */
  holdEnded(charged: bigint | null): void
  /**
   * Called before the charge, with the usage and the answer without its cost.
   * @throws {KisError} another process has the call, and nothing may be charged.
   */
  completed(usage: Usage, value: object): Promise<void>
}

/** Returns the organization whose turn is taken, or undefined when another part of the service calls. */
export function findOrganizationId({ caller }: Pick<RequestContext, 'caller'>): string | undefined {
  return caller && 'organizationId' in caller ? caller.organizationId : undefined
}

/** Returns the part of the model's engine that does what the model does. */
export function getEnginePart<Part extends keyof EngineParts>(
  deps: Pick<Ports, 'engines'>,
  model: Model,
  part: Part,
): NonNullable<EngineParts[Part]> {
  const found = getEngine(deps, model)[part]
  if (!found) throw new Error(`the engine ${model.engine} has no ${part} models`)
  return found
}

export function getEngine({ engines }: Pick<Ports, 'engines'>, model: Model): Engine {
  const engine = engines.get(model.engine)
  if (!engine) throw new Error(`no engine ${model.engine} was opened`)
  return engine
}
