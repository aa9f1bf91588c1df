import type { Agents, HomeDocument, Knowledge, Spend } from './home.ts'

const MAX_RUNS = 8
const DAYS = 7
const DAY_MS = 86_400_000

type Live = ReadonlyMap<string, HomeDocument | null>

/** Replaces documents of the list by their newest events. Null: the document was deleted. */
function asNow(documents: readonly HomeDocument[], live: Live): readonly HomeDocument[] {
  return documents.flatMap((document) => live.get(document.id) ?? (live.has(document.id) ? [] : [document]))
}

/**
 * Returns the documents in work, moving ones first, and the failed ones: the lists with the changes of later events.
 */
export function documentsNow({ processing, queued, failed }: Knowledge, live: Live) {
  const listed = [processing, queued, failed].flatMap(({ edges }) => edges.map(({ node }) => node))
  const known = new Set(listed.map(({ id }) => id))
  const came = [...live.values()].filter((document) => document !== null && !known.has(document.id)) as HomeDocument[]
  const all = [...asNow(listed, live), ...came]
  return {
    inWork: [...all.filter(({ status }) => status === 'PROCESSING'), ...all.filter(({ status }) => status === 'QUEUED')],
    failed: all.filter(({ status }) => status === 'FAILED'),
  }
}

/** A recent run of an agent or a workflow. */
export interface Run {
  readonly id: string
  readonly kind: 'agent' | 'workflow'
  /** The ID of the agent or the workflow. */
  readonly ofId: string
  /** Null: the agent or workflow was deleted. */
  readonly name: string | null
  readonly status: Agents['agentRuns']['edges'][number]['node']['status']
  readonly startedAt: string
  readonly cost: string | null
}

/** Returns the newest runs of agents and workflows together. */
export function newestRuns({ agentRuns, workflowRuns }: Agents): readonly Run[] {
  const ofAgents = agentRuns.edges.map(
    ({ node: { agentId, agent, ...run } }): Run => ({ ...run, kind: 'agent', ofId: agentId, name: agent?.name ?? null }),
  )
  const ofWorkflows = workflowRuns.edges.map(
    ({ node: { workflowId, workflow, ...run } }): Run => ({ ...run, kind: 'workflow', ofId: workflowId, name: workflow?.name ?? null }),
  )
  return [...ofAgents, ...ofWorkflows].sort((one, other) => (one.startedAt < other.startedAt ? 1 : -1)).slice(0, MAX_RUNS)
}

/**
 * Returns the midnight in UTC at which the last seven days start, including today. Days of the service are days in UTC.
 */
export function weekBefore(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()) - (DAYS - 1) * DAY_MS)
}

/** The calls and the cost of one day. */
export interface Day {
  /** A date such as `2026-11-23`. */
  readonly day: string
  readonly calls: number
  readonly amount: string
  /** Share of the most expensive day's cost: 0 to 1. */
  readonly share: number
}

/** Returns the last seven days, also those without a call. The last one is today. */
export function lastDays({ usageSummary: { groups } }: Spend, now: Date): readonly Day[] {
  const start = weekBefore(now).getTime()
  const byDay = new Map(groups.map(({ day, totals }) => [day?.slice(0, 10), totals]))
  const most = Math.max(...groups.map(({ totals }) => Number(totals.amount)), 0)
  return Array.from({ length: DAYS }, (_, index) => {
    const day = new Date(start + index * DAY_MS).toISOString().slice(0, 10)
    const { calls = 0, amount = '0' } = byDay.get(day) ?? {}
    return { day, calls, amount, share: most === 0 ? 0 : Number(amount) / most }
  })
}

export const STEPS = ['collection', 'document', 'ask', 'key'] as const
export type Step = (typeof STEPS)[number]

interface SetupState {
  readonly knowledge: Knowledge | null
  readonly agents: Agents | null
  /** IDs of keys. */
  readonly keys: readonly string[] | null
  readonly ownKey: string
}

/** Returns which of the first steps are done. A step that could not be queried is missing. */
export function stepsDone({ knowledge, agents, keys, ownKey }: SetupState): ReadonlyMap<Step, boolean> {
  const done = new Map<Step, boolean>()
  if (knowledge) {
    done.set('collection', knowledge.collections.edges.length > 0)
    done.set('document', (knowledge.organization?.documentCounts?.ready ?? 0) > 0)
  }
  if (agents) done.set('ask', agents.agentRuns.edges.length > 0)
  // The first key was created with the organization.
  if (keys)
    done.set(
      'key',
      keys.some((id) => id !== ownKey),
    )
  return done
}
