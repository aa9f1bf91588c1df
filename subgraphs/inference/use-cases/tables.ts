import { FAIR_JOBS_INDEX, type FairLeasable } from '../../common/documents/fair-jobs.ts'
import { EVENT_HEADS, EVENTS, type EventCollections, OUTBOX_INDEX, type Telling } from '../../common/events/event-log.ts'
import { LABELS } from '../../common/identity/earlier-rotation.ts'
import type { Scope } from '../../common/identity/principal.ts'
import type { DocumentCollection, DocumentStore, IndexSpec } from '../../common/ports/document-store.ts'
import { TASK_LEASES, type TaskLease } from '../../common/process/tasks.ts'
import type { RunError, RunStatus } from '../domain/agents/run.ts'
import type { NodeRun, WorkflowError } from '../domain/workflows/run.ts'

/** A call that was sent with an idempotency key, or that is a step of a run, with its outcome. */
export type KeyedCall = {
  /** `<API key id>:<digest of the idempotency key>`, or `step <run> <path>`. */
  readonly _id: string
  readonly organizationId: string
  /** SHA-256 of the operation and its request in canonical JSON: the same key with another digest is a conflict. */
  readonly digest: string
  /**
   * `running`: an engine may be at work. `answered`: the result is stored, but may not be charged yet. `ended`: nothing
   * more happens.
   */
  readonly state: 'running' | 'answered' | 'ended'
  /** Identifies the `KeyedRun` that may write the call. A process that takes the call over sets a new one. */
  readonly token: string
  /** Once this time has passed, the process of the call is gone. */
  readonly leaseUntil: Date
  /** The newest hold of the call, or null when none was placed, so that nothing was charged. */
  readonly holdId: string | null
  /** The packed `KeyedOutcome`, or null when there is none yet. */
  readonly outcome: string | null
  /** The charge in nano-USD, as a decimal, or null until the call has ended. */
  readonly cost: string | null
  readonly startedAt: Date
  /** When the key becomes free for another call. */
  readonly expiresAt: Date
  /** The charges of attempts at a running step, in nano-USD, as a decimal. Absent: nothing. */
  readonly spent?: string
  /** Set for a step of a run: the run, and the path of the step in it. */
  readonly step?: { readonly runId: string; readonly path: string }
  /** Set for a streamed chat: the stream by which a repeat follows the call while it runs. */
  readonly streamId?: string
}

/**
 * A live process of the inference subgraph. If only one process uses the store, the record may also be that of a
 * process that is gone but may still hold money.
 */
export type Replica = {
  readonly _id: string
  readonly seenAt: Date
}

/** The use of a key's rates by its calls, in all processes together. Only on MongoDB. */
export type KeyRateRecord = {
  /** The API key's id. */
  readonly _id: string
  /** Changes with each write, so that a process overwrites only what it has read. */
  readonly token: string
  /** The amounts of `RateMeter` in 60,000ths, each with its time in milliseconds. */
  readonly requestsTaken: number
  readonly requestsDrainedAt: number
  readonly tokensTaken: number
  readonly tokensDrainedAt: number
  /** From this time on, nothing is consumed any more. */
  readonly expiresAt: Date
}

/** An agent in its current version. */
export type AgentRecord = {
  /** `agt_…` */
  readonly _id: string
  readonly organizationId: string
  /** Unique in the organization. A deleted agent has its id here, so that its code is free. */
  readonly code: string
  /** False from its deletion until its record is removed. */
  readonly listed: boolean
  /** Set when the agent is deleted: the time at which its record is due for removal. */
  readonly forgetAt?: Date
  /** Starts at 1 and grows by 1 with each change. */
  readonly version: number
  /** The text that `storedDefinition` returns. */
  readonly definition: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** An agent's definition in one version. It is stored until the agent is deleted. */
export type AgentVersion = {
  /** `<agent>_<version>` */
  readonly _id: string
  readonly organizationId: string
  readonly definition: string
  readonly createdAt: Date
}

/** The common fields of the runs of agents and workflows. */
export type RunBase = Telling & {
  /** `run_…` for an agent, `wfr_…` for a workflow. */
  readonly _id: string
  readonly organizationId: string
  readonly apiKeyId: string
  /**
   * The scopes of the caller who started the run: an access token may have fewer than its key. Absent in runs of
   * earlier versions.
   */
  readonly scopes?: readonly Scope[]
  /** Set for a run with an idempotency key: the API key's id and the digest of the key. */
  readonly key?: string
  /** SHA-256 of the request in canonical JSON. The same key with another digest is a conflict. */
  readonly digest?: string
  readonly status: RunStatus
  /** The charge in nano-USD, as a decimal. Null while it runs, and when the charge is unknown. */
  readonly cost: string | null
  readonly error: RunError | null
  /** A caller has cancelled the run. */
  readonly isCancelled: boolean
  /** The hold that pays for the run's calls, and its amount in nano-USD. Both are written before the hold is placed. */
  readonly holdId: string
  readonly holdAmount: string
  /** The most that the run may cost, in nano-USD. */
  readonly maxCost: string
  /** Present until the run's last event is written. */
  readonly job?: RunJob
  readonly startedAt: Date
  /** When the run's time is over. */
  readonly deadline: Date
  readonly endedAt: Date | null
  /** When the run is deleted with its events. */
  readonly expiresAt: Date
  /**
   * Set once the run has ended: its organization, and its position among the organization's ended runs of this kind.
   */
  readonly keptOf?: string
  readonly keptAt?: number
}

/** The characters of an organization's ended runs of one kind. */
type RetainedRunsRecord = {
  /** `<organization>_<kind>` */
  readonly _id: string
  /** Characters of all ended runs, including runs that were deleted since. */
  readonly characters: number
}

type RunJob = FairLeasable & {
  readonly kind: 'run'
  /** The run's workflow; absent in a run of an agent. */
  readonly workflowId?: string
  /** Starts since the run last finished a step. More than a few mean that it kills its processes. */
  readonly starts: number
  /** The process in which the run starts alone, because one of its starts may have ended another. */
  readonly alone?: string | null
  /** `Waits` as JSON, when the run was postponed. */
  readonly waits?: string
  /** The deadline of the run. A run that finds no slot until then ends without one. */
  readonly deadline?: Date
}

/**
 * A run of an agent. A run of an earlier version of the service has ended, or has `leaseUntil` in place of job, hold,
 * maximum cost and deadline.
 */
export type RunRecord = RunBase & {
  readonly agentId: string
  readonly agentVersion: number
  readonly threadId: string | null
  /** The run's messages as JSON, without the bytes of images. */
  readonly input: string
  /** `RunOutcome` as JSON, or null until the run is completed. */
  readonly outcome: string | null
  /** The receipt: `RunStep`s as JSON, with costs as decimals. Complete once the run has ended. */
  readonly steps: string
  readonly leaseUntil?: Date
}

/** A piece of the input of an agent's run, stored until the run has ended: `StoredRunInput` as JSON. */
export type RunInputRecord = {
  /** `<run>_<piece>`; pieces are counted from 0. */
  readonly _id: string
  readonly runId: string
  readonly piece: number
  readonly text: string
  readonly expiresAt: Date
}

/** An event of a run. */
export type RunEventRecord = {
  /** `<run>_<sequence>` */
  readonly _id: string
  readonly organizationId: string
  readonly runId: string
  /** 1, 2, 3 … without gaps. */
  readonly sequence: number
  readonly at: Date
  /** `RunEvent` as JSON, with costs as decimals. */
  readonly event: string
}

/** A workflow in its current version. */
export type WorkflowRecord = {
  /** `wfl_…` */
  readonly _id: string
  readonly organizationId: string
  /** Unique in the organization. A deleted workflow has its id here, so that its code is free. */
  readonly code: string
  readonly name: string
  /** False from its deletion until its record is removed. */
  readonly listed: boolean
  /** Set when the workflow is deleted: the time at which its record is due for removal. */
  readonly forgetAt?: Date
  /** Starts at 1 and grows by 1 with each change. */
  readonly version: number
  /** `WorkflowDefinition` as JSON. */
  readonly definition: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type WorkflowRunRecord = RunBase & {
  readonly workflowId: string
  readonly workflowVersion: number
  /** JSON. */
  readonly inputs: string
  /** JSON, or null until the run is completed. */
  readonly output: string | null
  readonly nodes: Readonly<Record<string, NodeRun>>
  /** `PinnedAgent`s as JSON, by the agent ids that the nodes use. */
  readonly agents: string
  readonly error: WorkflowError | null
}

/** A conversation that the service stores. */
export type ThreadRecord = {
  /** `thr_…` */
  readonly _id: string
  readonly organizationId: string
  readonly agentId: string
  /** Messages of the chat protocol, as JSON. */
  readonly messages: string
  /** Grows by 1 with each run that starts or is added. */
  readonly revision: number
  /** The first mark of the next run. Absent in threads of earlier versions. */
  readonly nextMark?: number
  /** The runs that were added last, so that a run that ends twice is added once. */
  readonly added?: readonly string[]
  /** The API keys of the thread's runs, the latest last. Absent in threads of earlier versions. */
  readonly by?: readonly string[]
  readonly updatedAt: Date
  /** When the thread is deleted, unless a run is added before. */
  readonly expiresAt: Date
}

/** The collections of the inference subgraph. Its events are the ends of runs. */
export interface Collections extends EventCollections {
  readonly agents: DocumentCollection<AgentRecord>
  readonly agentVersions: DocumentCollection<AgentVersion>
  readonly runs: DocumentCollection<RunRecord>
  readonly runEvents: DocumentCollection<RunEventRecord>
  readonly runInputs: DocumentCollection<RunInputRecord>
  readonly retainedRuns: DocumentCollection<RetainedRunsRecord>
  readonly threads: DocumentCollection<ThreadRecord>
  readonly workflows: DocumentCollection<WorkflowRecord>
  /** `_id`: `<workflow>_<version>` */
  readonly workflowVersions: DocumentCollection<AgentVersion>
  readonly workflowRuns: DocumentCollection<WorkflowRunRecord>
  readonly keyedCalls: DocumentCollection<KeyedCall>
  readonly replicas: DocumentCollection<Replica>
  readonly keyRates: DocumentCollection<KeyRateRecord>
  readonly taskLeases: DocumentCollection<TaskLease>
}

/** Indexes of agents and workflows. */
const OWNED_INDEXES: readonly IndexSpec[] = [
  { fields: ['organizationId', 'code'], unique: true },
  { fields: ['organizationId', 'listed'] },
  { fields: ['forgetAt'], sparse: true },
]

/** Indexes of runs that have not ended. */
const JOB_INDEXES: readonly IndexSpec[] = [
  { fields: ['job.dueAt'], sparse: true },
  FAIR_JOBS_INDEX,
  { fields: ['job.deadline'], sparse: true },
]

/** Orders ended runs by their ends. */
const RETAINED_INDEX: IndexSpec = { fields: ['keptOf', 'keptAt'], sparse: true }

export function openCollections(store: Pick<DocumentStore, 'collection'>): Collections {
  return {
    agents: store.collection({
      name: 'agents',
      indexes: [...OWNED_INDEXES, LABELS],
    }),
    agentVersions: store.collection({ name: 'agent_versions', indexes: [LABELS] }),
    runs: store.collection({
      name: 'runs',
      indexes: [
        { fields: ['organizationId'] },
        { fields: ['organizationId', 'agentId'] },
        { fields: ['organizationId', 'agentId', 'status'] },
        { fields: ['organizationId', 'status'] },
        { fields: ['key'], unique: true, sparse: true },
        { fields: ['leaseUntil'], sparse: true },
        ...JOB_INDEXES,
        { fields: ['expiresAt'] },
        RETAINED_INDEX,
        OUTBOX_INDEX,
      ],
    }),
    events: store.collection(EVENTS),
    eventHeads: store.collection(EVENT_HEADS),
    runEvents: store.collection({ name: 'run_events', indexes: [{ fields: ['runId', 'sequence'], unique: true }] }),
    runInputs: store.collection({
      name: 'run_given',
      indexes: [{ fields: ['runId', 'piece'], unique: true }, { fields: ['expiresAt'] }],
    }),
    retainedRuns: store.collection({ name: 'kept_runs', indexes: [] }),
    threads: store.collection({
      name: 'threads',
      indexes: [{ fields: ['expiresAt'] }, { fields: ['organizationId'] }, { fields: ['organizationId', 'agentId'] }],
    }),
    workflows: store.collection({
      name: 'workflows',
      indexes: OWNED_INDEXES,
    }),
    workflowVersions: store.collection({ name: 'workflow_versions', indexes: [] }),
    workflowRuns: store.collection({
      name: 'workflow_runs',
      indexes: [
        { fields: ['organizationId'] },
        { fields: ['organizationId', 'workflowId'] },
        { fields: ['organizationId', 'workflowId', 'status'] },
        { fields: ['organizationId', 'status'] },
        { fields: ['key'], unique: true, sparse: true },
        ...JOB_INDEXES,
        { fields: ['job.workflowId'], sparse: true },
        { fields: ['expiresAt'] },
        RETAINED_INDEX,
        OUTBOX_INDEX,
      ],
    }),
    keyedCalls: store.collection({
      name: 'keyed_calls',
      indexes: [{ fields: ['expiresAt'] }, { fields: ['state'] }, { fields: ['step.runId'], sparse: true }, { fields: ['organizationId'] }],
    }),
    replicas: store.collection({ name: 'replicas', indexes: [{ fields: ['seenAt'] }] }),
    keyRates: store.collection({ name: 'key_rates', indexes: [{ fields: ['expiresAt'] }] }),
    taskLeases: store.collection(TASK_LEASES),
  }
}
