import { z } from 'zod'
import { checkJson } from '../../../common/check.ts'
import { type RecordKind, recordKind, type Shape } from '../../../common/portable/record-kind.ts'
import { count, date, digits, failure, id, json, named, scopes, text } from '../../../common/portable/shapes.ts'
import type { AgentDefinition } from '../../domain/agents/definition.ts'
import { MAX_STEPS } from '../../domain/agents/definition.ts'
import { MAX_SERVERS, type McpServer } from '../../domain/agents/mcp-servers.ts'
import { workflowDefinition } from '../../domain/workflows/definition.ts'
import type { NodeRun } from '../../domain/workflows/run.ts'
import type { AgentRecord, AgentVersion, RunEventRecord, RunRecord, ThreadRecord, WorkflowRecord, WorkflowRunRecord } from '../tables.ts'

const CODE = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/)
/** Above what any definition may have. */
const MAX_DEFINITION = 2 * 1024 * 1024
const MAX_NODES = 1_000
const STATUS = z.enum(['completed', 'failed', 'cancelled'])

const SERVER: Shape<McpServer, never> = {
  name: z.string().regex(/^[A-Za-z0-9_-]{1,16}$/),
  url: text(2_048),
  headerNames: z.array(text(64)).max(10),
  /** Under the key of the archive, if the archive has one. */
  sealedHeaders: text(200_000).nullable(),
  allowedTools: z.array(text(128)).max(50).nullable(),
}

const DEFINITION: Shape<AgentDefinition, never> = {
  name: text(200),
  instructions: text(32_768),
  modelId: text(500),
  collectionIds: z.array(id('col')).max(10),
  // Old definitions have none.
  mcpServers: z.array(z.strictObject(SERVER)).max(MAX_SERVERS).optional(),
  sampling: z.strictObject({
    temperature: z.number().min(0).max(2).optional(),
    top_p: z.number().min(0).max(1).optional(),
    max_completion_tokens: count().min(1).optional(),
  }),
  responseSchema: z.looseObject({}).refine(isFlat, 'is nested too deeply').nullable(),
  maxSteps: count().min(1).max(MAX_STEPS),
  maxCost: digits(),
}

const agentText = () => json(z.strictObject(DEFINITION)).max(MAX_DEFINITION)

const workflowText = () => text(MAX_DEFINITION).refine(isWorkflow, 'is not the definition of a workflow')

/** Of agents and workflows: who it belongs to, and marks of its deletion. */
type Stays = 'organizationId' | 'listed' | 'forgetAt'

const VERSIONED = { version: count().min(1), createdAt: date(), updatedAt: date() }

export const AGENT = recordKind<AgentRecord, Stays>('inference/agents', {
  _id: id('agt'),
  code: CODE,
  definition: agentText(),
  ...VERSIONED,
})

export const WORKFLOW = recordKind<WorkflowRecord, Stays>('inference/workflows', {
  _id: id('wfl'),
  code: CODE,
  name: text(1_000),
  definition: workflowText(),
  ...VERSIONED,
})

export const AGENT_VERSION = versionKind('inference/agent-versions', 'agt', agentText())
export const WORKFLOW_VERSION = versionKind('inference/workflow-versions', 'wfl', workflowText())

function versionKind(name: string, prefix: string, definition: z.ZodType): RecordKind<Omit<AgentVersion, 'organizationId'>> {
  return recordKind<AgentVersion, 'organizationId'>(name, {
    _id: z.string().refine((value) => /^_[0-9a-f]{32}_[1-9]\d{0,9}$/.test(value.slice(prefix.length)) && value.startsWith(prefix)),
    definition,
    createdAt: date(),
  })
}

export const THREAD = recordKind<ThreadRecord, 'organizationId'>('inference/threads', {
  _id: id('thr'),
  agentId: id('agt'),
  messages: json(z.array(z.looseObject({}))),
  revision: count(),
  nextMark: count().optional(),
  added: z.array(id('run')).max(1_000).optional(),
  by: z.array(id('key')).max(100).optional(),
  updatedAt: date(),
  expiresAt: date(),
})

/** What is only needed until a run has ended, and what tells others of its end. */
type StaysOfRun = 'organizationId' | 'outbox' | 'outboxOf' | 'outboxMark' | 'key' | 'digest' | 'job' | 'keptOf'

/** Of runs of both kinds. */
const ENDED = {
  apiKeyId: id('key'),
  scopes: scopes().optional(),
  status: STATUS,
  cost: digits().nullable(),
  isCancelled: z.boolean(),
  // Runs of earlier versions had none of these.
  holdId: text(200).optional(),
  holdAmount: digits().optional(),
  maxCost: digits().optional(),
  startedAt: date(),
  deadline: date().optional(),
  endedAt: date(),
  expiresAt: date(),
  keptAt: count().optional(),
}

export const RUN = recordKind<RunRecord, StaysOfRun | 'leaseUntil'>('inference/runs', {
  _id: id('run'),
  ...ENDED,
  error: failure().nullable(),
  agentId: id('agt'),
  agentVersion: count(),
  threadId: id('thr').nullable(),
  input: json(),
  outcome: json().nullable(),
  steps: json(),
})

const NODE: Shape<NodeRun, never> = {
  state: z.enum(['pending', 'running', 'done', 'failed', 'skipped']),
  output: json().nullable(),
  cost: digits(),
  error: failure().nullable(),
  startedAt: date().nullable(),
  endedAt: date().nullable(),
}

export const WORKFLOW_RUN = recordKind<WorkflowRunRecord, StaysOfRun>('inference/workflow-runs', {
  _id: id('wfr'),
  ...ENDED,
  error: failure()
    .extend({ nodeId: text(200).nullable() })
    .nullable(),
  workflowId: id('wfl'),
  workflowVersion: count(),
  inputs: json(),
  output: json().nullable(),
  nodes: named(z.strictObject(NODE), MAX_NODES),
  agents: json(),
})

export const RUN_EVENT = recordKind<RunEventRecord, 'organizationId'>('inference/run-events', {
  _id: z.string().regex(/^(?:run|wfr)_[0-9a-f]{32}_[1-9]\d{0,9}$/),
  runId: z.string().regex(/^(?:run|wfr)_[0-9a-f]{32}$/),
  sequence: count().min(1),
  at: date(),
  event: json(z.looseObject({ type: text(100) })),
})

/** The characters that ended runs have taken so far, by the kind of run: `keptAt` of runs counts them. */
export const RETAINED_RUNS = recordKind<{ readonly noun: string; readonly characters: number }, never>('inference/kept-runs', {
  noun: z.enum(['agent', 'workflow']),
  characters: count(),
})

function isFlat(value: unknown): boolean {
  try {
    checkJson(value, 'responseSchema')
    return true
  } catch {
    return false
  }
}

function isWorkflow(stored: string): boolean {
  try {
    workflowDefinition(JSON.parse(stored), 'definition')
    return true
  } catch {
    return false
  }
}
