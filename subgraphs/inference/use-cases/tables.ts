import { type FairLeasable, JOB_TURNS_INDEX } from '../../common/documents/fair-jobs.ts'
import { EVENT_HEADS, EVENTS, type EventCollections, OUTBOX_INDEX, type Telling } from '../../common/events/event-log.ts'
import type { DocumentCollection, DocumentStore, IndexSpec } from '../../common/ports/document-store.ts'
import type { RunError, RunStatus } from '../domain/agents/run.ts'
import type { NodeRun, WorkflowError } from '../domain/workflows/run.ts'

/** A call that was sent with an idempotency key, and what came of it. */
export type KeyedCall = {
  /** Made of the API key's id and the digest of the idempotency key. */
  readonly _id: string
  readonly organizationId: string
  /** SHA-256 of the operation and its request in canonical JSON: the same key with another digest is a conflict. */
  readonly digest: string
  /**
   * `running`: an engine may be at work. `answered`: the answer is kept, its charge may be missing. `ended`: nothing
   * more happens.
   */
  readonly state: 'running' | 'answered' | 'ended'
  /** Of the run that writes; whoever takes the call over makes another. */
  readonly token: string
  /** When this has passed, the process that ran the call is gone. */
  readonly leaseUntil: Date
  /** The newest hold of the call; null: none was placed, so that nothing was charged. */
  readonly holdId: string | null
  /** What is replayed, packed; null until there is something. */
  readonly outcome: string | null
  /** Nano-USD that were charged, as a decimal; null until the call has ended. */
  readonly cost: string | null
  readonly startedAt: Date
  /** When the key may stand for another call. */
  readonly expiresAt: Date
  /** Of a step of a run: the run, and where in it. */
  readonly step?: { readonly runId: string; readonly path: string }
}

/**
 * A process of inference that lives; where no other process has the store, also one that is gone and may hold money
 * still.
 */
export type Replica = {
  readonly _id: string
  readonly seenAt: Date
}

/** An agent as it is. */
export type AgentRecord = {
  /** `agt_…` */
  readonly _id: string
  readonly organizationId: string
  /** Unique in the organization; of a deleted agent its id, so that its code is free. */
  readonly code: string
  /** False once it is deleted, until it is forgotten. */
  readonly listed: boolean
  /** Once it is deleted: when it is to be forgotten. */
  readonly forgetAt?: Date
  /** 1, and one more with each change. */
  readonly version: number
  /** `storedDefinition`. */
  readonly definition: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** What an agent was in one version, until the agent is deleted. */
export type AgentVersion = {
  /** `<agent>_<version>` */
  readonly _id: string
  readonly organizationId: string
  readonly definition: string
  readonly createdAt: Date
}

/** What a run of an agent and a run of a workflow have in common. */
export type RunBase = Telling & {
  /** `run_…` of an agent, `wfr_…` of a workflow. */
  readonly _id: string
  readonly organizationId: string
  readonly apiKeyId: string
  /** Of a run that was started with an idempotency key: the API key's id and the digest of the key. */
  readonly key?: string
  /** SHA-256 of its request in canonical JSON: the same key with another digest is a conflict. */
  readonly digest?: string
  readonly status: RunStatus
  /** Nano-USD that it was charged, as a decimal; null while it runs. */
  readonly cost: string | null
  readonly error: RunError | null
  /** A caller wants it ended. */
  readonly isCancelled: boolean
  /**
   * The hold that its calls are paid from, and the hold's amount in nano-USD. Both are written before the hold is
   * placed.
   */
  readonly holdId: string
  readonly holdAmount: string
  /** The most that it may cost, in nano-USD. */
  readonly maxCost: string
  /** Until its end has been told. */
  readonly job?: RunJob
  readonly startedAt: Date
  /** When its time is over. */
  readonly deadline: Date
  readonly endedAt: Date | null
  /** When it is forgotten with its events. */
  readonly expiresAt: Date
}

export type RunJob = FairLeasable & {
  readonly kind: 'run'
  /** The run's workflow; absent in a run of an agent. */
  readonly workflowId?: string
  /** Starts since the run last came to the end of a step. More than a few mean that processes die of it. */
  readonly starts: number
  /** The process in which it begins alone, since one of its starts may have ended another. */
  readonly alone?: string | null
  /** `Waits` as JSON, of a run that was put off. */
  readonly waits?: string
  /** As of the run: one that has found no place until then ends without one. */
  readonly deadline?: Date
}

/** A run of an earlier version has ended, or has `leaseUntil` in place of job, hold, maximum cost and deadline. */
export type RunRecord = RunBase & {
  readonly agentId: string
  readonly agentVersion: number
  readonly threadId: string | null
  /** The messages that it was given, as JSON; without the bytes of images. */
  readonly input: string
  /** `RunOutcome` as JSON, once it is completed. */
  readonly outcome: string | null
  /** The receipt: `RunStep`s as JSON, with costs as decimals; complete once the run has ended. */
  readonly steps: string
  readonly leaseUntil?: Date
}

/** A piece of what an agent's run begins with, until the run has ended: `GivenToRun` as JSON. */
export type RunGivenRecord = {
  /** `<run>_<piece>`, pieces counted from 0. */
  readonly _id: string
  readonly runId: string
  readonly piece: number
  readonly text: string
  readonly expiresAt: Date
}

/** Something that happened in a run. */
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

/** A workflow as it is. */
export type WorkflowRecord = {
  /** `wfl_…` */
  readonly _id: string
  readonly organizationId: string
  /** Unique in the organization; of a deleted workflow its id, so that its code is free. */
  readonly code: string
  readonly name: string
  /** False once it is deleted, until it is forgotten. */
  readonly listed: boolean
  /** Once it is deleted: when it is to be forgotten. */
  readonly forgetAt?: Date
  /** 1, and one more with each change. */
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
  /** JSON, once it is completed. */
  readonly output: string | null
  readonly nodes: Readonly<Record<string, NodeRun>>
  /** `PinnedAgent`s as JSON, by what nodes call them. */
  readonly agents: string
  readonly error: WorkflowError | null
}

/** A conversation that the service keeps. */
export type ThreadRecord = {
  /** `thr_…` */
  readonly _id: string
  readonly organizationId: string
  readonly agentId: string
  /** Messages of the chat protocol, as JSON. */
  readonly messages: string
  /** Grows with each run that is added. */
  readonly revision: number
  /** The runs that were added last, so that a run which ends twice is added once. */
  readonly added?: readonly string[]
  readonly updatedAt: Date
  /** When it is forgotten, unless a run is added before. */
  readonly expiresAt: Date
}

/** The events are the ends of runs. */
export interface Collections extends EventCollections {
  readonly agents: DocumentCollection<AgentRecord>
  readonly agentVersions: DocumentCollection<AgentVersion>
  readonly runs: DocumentCollection<RunRecord>
  readonly runEvents: DocumentCollection<RunEventRecord>
  readonly runGiven: DocumentCollection<RunGivenRecord>
  readonly threads: DocumentCollection<ThreadRecord>
  readonly workflows: DocumentCollection<WorkflowRecord>
  /** `_id`: `<workflow>_<version>` */
  readonly workflowVersions: DocumentCollection<AgentVersion>
  readonly workflowRuns: DocumentCollection<WorkflowRunRecord>
  readonly keyedCalls: DocumentCollection<KeyedCall>
  readonly replicas: DocumentCollection<Replica>
}

/** Of agents and of workflows. */
const OWNED_INDEXES: readonly IndexSpec[] = [
  { fields: ['organizationId', 'code'], unique: true },
  { fields: ['organizationId', 'listed'] },
  { fields: ['forgetAt'], sparse: true },
]

/** Of runs that have not ended. */
const JOB_INDEXES: readonly IndexSpec[] = [
  { fields: ['job.dueAt'], sparse: true },
  JOB_TURNS_INDEX,
  { fields: ['job.deadline'], sparse: true },
]

export function openCollections(store: Pick<DocumentStore, 'collection'>): Collections {
  return {
    agents: store.collection({
      name: 'agents',
      indexes: OWNED_INDEXES,
    }),
    agentVersions: store.collection({ name: 'agent_versions', indexes: [] }),
    runs: store.collection({
      name: 'runs',
      indexes: [
        { fields: ['organizationId', 'agentId'] },
        { fields: ['key'], unique: true, sparse: true },
        { fields: ['leaseUntil'], sparse: true },
        ...JOB_INDEXES,
        { fields: ['expiresAt'] },
        OUTBOX_INDEX,
      ],
    }),
    events: store.collection(EVENTS),
    eventHeads: store.collection(EVENT_HEADS),
    runEvents: store.collection({ name: 'run_events', indexes: [{ fields: ['runId', 'sequence'], unique: true }] }),
    runGiven: store.collection({
      name: 'run_given',
      indexes: [{ fields: ['runId', 'piece'], unique: true }, { fields: ['expiresAt'] }],
    }),
    threads: store.collection({ name: 'threads', indexes: [{ fields: ['expiresAt'] }] }),
    workflows: store.collection({
      name: 'workflows',
      indexes: OWNED_INDEXES,
    }),
    workflowVersions: store.collection({ name: 'workflow_versions', indexes: [] }),
    workflowRuns: store.collection({
      name: 'workflow_runs',
      indexes: [
        { fields: ['organizationId', 'workflowId'] },
        { fields: ['key'], unique: true, sparse: true },
        ...JOB_INDEXES,
        { fields: ['job.workflowId'], sparse: true },
        { fields: ['expiresAt'] },
        OUTBOX_INDEX,
      ],
    }),
    keyedCalls: store.collection({
      name: 'keyed_calls',
      indexes: [{ fields: ['expiresAt'] }, { fields: ['state'] }, { fields: ['step.runId'], sparse: true }],
    }),
    replicas: store.collection({ name: 'replicas', indexes: [{ fields: ['seenAt'] }] }),
  }
}
