import { listById, type OrderedPage } from '../../../common/documents/lists.ts'
import type { ReadBudget } from '../../../common/documents/long-records.ts'
import { NotFound, TooBusy } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import { firstFreeMark, MARKS_OF_RUN } from '../../domain/agents/earlier-marks.ts'
import type { RunOutcome } from '../../domain/agents/run.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Ports, RequestContext } from '../deps.ts'
import type { AgentRecord, RunRecord, ThreadRecord } from '../tables.ts'
import type { StoredRunInput } from './stored-run-input.ts'

/** Limits of a thread: messages, and characters of their JSON. The oldest messages are dropped first. */
const MAX_MESSAGES = 100
const MAX_CHARACTERS = 200_000
/** Keys that a thread remembers. Few have more than one or two. */
const MAX_KEYS = 100
/** How long a thread is kept after its last run: 30 days. */
const RETENTION_MS = 30 * 86_400_000
/** Characters of a title. */
const MAX_TITLE = 200
const THREAD_ID = /^thr_/
/** Most attempts to write a thread while other runs write it. */
const MAX_ATTEMPTS = 10

interface Thread {
  readonly messages: readonly ProtocolObject[]
  /** The first of the marks that are reserved for the run. */
  readonly firstMark: number
}

/**
 * Returns the messages of a thread and reserves marks for a run, so that runs at the same time cite by different ones.
 * `newMessages`: those of the run, as JSON.
 * @throws {NotFound} the thread does not exist, or belongs to another organization or agent.
 * @throws {TooBusy} too many runs write the thread.
 */
export async function continueThread(
  { collections }: Ports,
  { organizationId }: Principal,
  threadId: string,
  agentId: string,
  newMessages: string,
): Promise<Thread> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const thread = await collections.threads.findOne({ _id: threadId, organizationId })
    if (thread?.agentId !== agentId) throw new NotFound('thread', threadId, 'input.threadId')
    const { messages, revision, nextMark = 1 } = thread
    const firstMark = Math.max(nextMark, firstFreeMark(messages, newMessages))
    const reserved = { $set: { nextMark: firstMark + MARKS_OF_RUN }, $inc: { revision: 1 } }
    if (await collections.threads.findOneAndUpdate({ _id: threadId, revision }, reserved))
      return { messages: JSON.parse(messages), firstMark }
  }
  throw new TooBusy('Too many runs write the thread at once.')
}

/** Returns a thread of the caller's organization, or null when there is none, or it has expired. */
export async function findThread(
  { collections, clock }: Pick<Ports, 'collections' | 'clock'>,
  { caller }: RequestContext,
  id: string,
): Promise<ThreadRecord | null> {
  const { organizationId } = requireScope(caller, 'agents')
  const thread = await collections.threads.findOne({ _id: id, organizationId })
  return thread && thread.expiresAt > clock.now() ? thread : null
}

/** Lists the threads of an agent that have not expired. It checks no permission: the caller must have been allowed to read the agent. */
export async function listThreads(
  { collections, clock }: Pick<Ports, 'collections' | 'clock'>,
  { _id, organizationId }: Pick<AgentRecord, '_id' | 'organizationId'>,
  page: OrderedPage,
  budget: ReadBudget,
): Promise<Connection<ThreadRecord>> {
  const listed = await listById(collections.threads, { organizationId, agentId: _id }, page, THREAD_ID, budget)
  const now = clock.now()
  // Those that are over are deleted soon, and no index tells them apart.
  return { ...listed, edges: listed.edges.filter(({ node }) => node.expiresAt > now) }
}

/** The beginning of the first text of a user; null: there is none. */
export function titleOf(messages: readonly ProtocolObject[]): string | null {
  for (const { role, content } of messages) {
    if (role !== 'user') continue
    const parts: readonly unknown[] = Array.isArray(content) ? content : [{ text: content }]
    const text = parts.map((part) => (part as { readonly text?: unknown } | null)?.text).find((each) => typeof each === 'string')
    if (typeof text === 'string' && text.trim()) return [...text.trim().slice(0, 2 * MAX_TITLE)].slice(0, MAX_TITLE).join('')
  }
  return null
}

/**
 * Adds a run's question and answer to its thread, once for each run, after those of runs that ended before.
 * `beginsThread`: creates the thread. Otherwise a missing thread was deleted and stays deleted. Marks that were reserved
 * for the run and not used become free, unless a later run has reserved marks.
 */
export async function addToThread(
  { collections, clock }: Pick<Ports, 'collections' | 'clock'>,
  { _id: runId, threadId, organizationId, agentId, apiKeyId, input }: RunRecord,
  { beginsThread, firstMark }: Pick<StoredRunInput, 'beginsThread' | 'firstMark'>,
  { text, nextMark }: Pick<RunOutcome, 'text' | 'nextMark'>,
): Promise<void> {
  if (threadId === null) return
  const newMessages: readonly ProtocolObject[] = JSON.parse(input)
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const thread = await collections.threads.findOne({ _id: threadId, organizationId })
    if (thread?.added?.includes(runId)) return
    const added = [...(thread?.added ?? []), runId].slice(-MAX_ATTEMPTS)
    const by = [...(thread?.by ?? []).filter((key) => key !== apiKeyId), apiKeyId].slice(-MAX_KEYS)
    const before: readonly ProtocolObject[] = thread ? JSON.parse(thread.messages) : []
    const messages = JSON.stringify(newest([...before, ...newMessages, { role: 'assistant', content: text }]))
    const isLast = !thread || thread.nextMark === firstMark + MARKS_OF_RUN
    const free = isLast && nextMark !== undefined && { nextMark }
    const updatedAt = clock.now()
    const expiresAt = new Date(updatedAt.getTime() + RETENTION_MS)
    if (thread) {
      const guard = { _id: threadId, revision: thread.revision }
      if (
        await collections.threads.findOneAndUpdate(guard, {
          $set: { messages, ...free, added, by, updatedAt, expiresAt },
          $inc: { revision: 1 },
        })
      )
        return
    } else {
      if (!beginsThread) return
      const created: ThreadRecord = {
        _id: threadId,
        organizationId,
        agentId,
        messages,
        ...free,
        revision: 1,
        added,
        by,
        updatedAt,
        expiresAt,
      }
      if ((await collections.threads.insertMissing([created])) === 1) return
    }
  }
  throw new Error(`the thread ${threadId} is being written by too many runs`)
}

/**
 * Deletes a thread. Its runs stay, and runs in progress do not create it again.
 * @throws {NotFound} the organization has no such thread.
 */
export async function deleteThread({ collections }: Pick<Ports, 'collections'>, { caller }: RequestContext, id: string): Promise<void> {
  const { organizationId } = requireScope(caller, 'agents')
  if (!(await collections.threads.findOneAndDelete({ _id: id, organizationId }))) throw new NotFound('thread', id, 'id')
}

/** Deletes expired threads, at most 1,000 per call. */
export async function removeExpiredThreads({ collections, clock }: Pick<Ports, 'collections' | 'clock'>): Promise<void> {
  await collections.threads.deleteMany({ expiresAt: { $lt: clock.now() } })
}

function newest(messages: readonly ProtocolObject[]): readonly ProtocolObject[] {
  let characters = 0
  const from = messages.findLastIndex((message) => {
    characters += JSON.stringify(message).length
    return characters > MAX_CHARACTERS
  })
  return messages.slice(Math.max(from + 1, messages.length - MAX_MESSAGES))
}
