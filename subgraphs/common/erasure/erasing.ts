import { billingOperation } from '../../../schema/operations.ts'
import type { ServicePrincipal } from '../identity/principal.ts'
import { type Link, type LinkContext, request } from '../link/link.ts'
import type { Clock } from '../process/clock.ts'
import type { Log } from '../process/log.ts'
import type { Task } from '../process/tasks.ts'

/** Interval between two polls of the erasures. */
const ROUND_MS = 5_000
/**
 * Late writes of calls that started before the erasure arrive within this time: their tokens are valid for 60 s, and
 * clocks of two hosts may differ by 30 s.
 */
export const LATE_WRITES_MS = 120_000

/** A pending erasure. */
export interface ErasureTask {
  /** `ers_…` */
  readonly id: string
  readonly organizationId: string
  readonly kind: 'organization' | 'person' | 'document'
  /** The document named in the request; null for other kinds of erasure. */
  readonly documentId: string | null
  /** That document and those that were unpacked from it. Empty until the knowledge subgraph has found them. */
  readonly documentIds: readonly string[]
  /** The keys of a person; empty for other kinds of erasure. */
  readonly apiKeyIds: readonly string[]
  readonly requestedAt: Date
  /** Whether this part of the service has recorded what it found. */
  readonly isFound: boolean
  /** As in `Found`. */
  readonly notes: string | null
}

/** What a part of the service stores for a task, before it deletes anything. */
export interface Found {
  /** Number of records by kind. */
  readonly found: Readonly<Record<string, number>>
  /** The documents to erase: see `ErasureTask`. */
  readonly documentIds?: readonly string[]
  /** What the part needs to continue once records are gone. */
  readonly notes?: string
}

/** Records that stay, and why. */
export interface RetainedRecords {
  readonly kind: string
  readonly count: number
  /** The reason, as a sentence. */
  readonly reason: string
}

/** The pending erasures of a part of the service. */
export interface ErasureQueue {
  /** Returns the oldest requests first, at most a page. */
  list(signal: AbortSignal): Promise<readonly ErasureTask[]>
  /** Records what was found. The first record stays. */
  noteFound(id: string, found: Found, signal: AbortSignal): Promise<void>
  /** Removes the task from the queue. Idempotent. */
  finish(task: ErasureTask, kept: readonly RetainedRecords[], signal: AbortSignal): Promise<void>
}

/** The result of one step of an erasure. */
export interface ErasedStep {
  /** True: nothing was left to erase. */
  readonly isEmpty: boolean
  readonly kept?: readonly RetainedRecords[]
}

/** How a part of the service erases its data. */
export interface Erasure {
  readonly queue: ErasureQueue
  /** Counts records, and deletes nothing. */
  find(task: ErasureTask, signal: AbortSignal): Promise<Found>
  /** Erases a part, or all, of what the subgraph stores. Can be repeated. */
  erase(task: ErasureTask, signal: AbortSignal): Promise<ErasedStep>
  readonly clock: Clock
  readonly log: Log
}

/** Erases what was requested. It has no state that matters, so any process continues after a crash. */
export function erasing(erasure: Erasure): Task {
  const emptied = new Set<string>()
  return { name: 'erase', everyMs: ROUND_MS, isShared: true, run: (signal) => eraseOnce(erasure, signal, emptied) }
}

/**
 * Runs one round. A failure of one task does not delay the others. `emptied`: tasks of which nothing was left. They
 * wait for late writes before a second search.
 */
export async function eraseOnce(
  { queue, find, erase, clock, log }: Erasure,
  signal: AbortSignal,
  emptied = new Set<string>(),
): Promise<void> {
  for (const task of roundRobin(await queue.list(signal))) {
    if (signal.aborted) return
    const isLate = clock.now().getTime() - task.requestedAt.getTime() >= LATE_WRITES_MS
    if (emptied.has(task.id) && !isLate) continue
    try {
      if (!task.isFound) {
        await queue.noteFound(task.id, await find(task, signal), signal)
        // If another process has recorded its findings first, those count: the next round reads them.
        continue
      }
      const { isEmpty, kept = [] } = await erase(task, signal)
      if (!isEmpty) continue
      emptied.add(task.id)
      if (!isLate) continue
      await queue.finish(task, kept, signal)
      emptied.delete(task.id)
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, erasureId: task.id }, 'an erasure could not continue; it is retried')
    }
  }
}

/**
 * Returns one task of each organization, then the next one of each, because some tasks read all data of an
 * organization.
 */
function roundRobin(tasks: readonly ErasureTask[]): readonly ErasureTask[] {
  const queues = [...Map.groupBy(tasks, ({ organizationId }) => organizationId).values()]
  const longest = Math.max(0, ...queues.map(({ length }) => length))
  return Array.from({ length: longest }, (_, round) => queues.flatMap((queue) => queue[round] ?? [])).flat()
}

const LIST = billingOperation(`query ErasuresToDo {
  erasuresToDo { id organizationId kind documentId documentIds apiKeyIds requestedAt isFound notes } }`)
const FOUND = billingOperation('mutation ErasureFound($input: ErasureFoundInput!) { erasureFound(input: $input) }')
const ENDED = billingOperation('mutation ErasureEnded($input: ErasureEndedInput!) { erasureEnded(input: $input) }')

/** Returns billing's queue of erasures for this service. */
export function erasureQueueOver(link: Link, service: ServicePrincipal['service']): ErasureQueue {
  const buildContext = (signal: AbortSignal): LinkContext => ({ caller: { service }, requestId: 'erasure', signal })
  return {
    async list(signal) {
      const { erasuresToDo } = await request(link, { query: LIST, variables: {} }, buildContext(signal))
      return erasuresToDo.map(({ kind, requestedAt, ...rest }) => ({
        ...rest,
        kind: kind.toLowerCase() as ErasureTask['kind'],
        requestedAt: new Date(requestedAt),
      }))
    },

    async noteFound(id, { found, ...rest }, signal) {
      const input = { id, found: Object.entries(found).map(([kind, count]) => ({ kind, count })), ...rest }
      await request(link, { query: FOUND, variables: { input } }, buildContext(signal))
    },

    async finish({ id }, retained, signal) {
      await request(link, { query: ENDED, variables: { input: { id, kept: retained } } }, buildContext(signal))
    },
  }
}
