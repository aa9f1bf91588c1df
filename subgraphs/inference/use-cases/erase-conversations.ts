import type { ErasedStep, ErasureTask, Found } from '../../common/erasure/erasing.ts'
import type { DocumentCollection } from '../../common/ports/document-store.ts'
import { timeOfId } from '../../common/process/ids.ts'
import type { ServedDeps } from './deps.ts'
import type { Collections, RunBase, ThreadRecord } from './tables.ts'

type ErasingDeps = Pick<ServedDeps, 'collections' | 'runs' | 'workflowRuns'>

/** Records of one read. Runs, events and answers may be long. */
const FEW = 20

/** Without what was asked and answered, of which an organization may have hundreds of megabytes. */
type Run = Pick<RunBase, '_id' | 'organizationId' | 'job' | 'status'> & { readonly threadId: string | null }

/** What quotes a document, or is of a person. */
interface Conversations {
  readonly runs: readonly Run[]
  readonly workflowRuns: readonly Run[]
  /** Ids, also of answers that are kept for idempotency keys. */
  readonly threads: readonly string[]
  readonly keyedCallIds: readonly string[]
}

/** Counts the conversations that a task erases. */
export async function findConversations(deps: ErasingDeps, task: ErasureTask): Promise<Found> {
  const { runs, workflowRuns, threads, keyedCallIds } = await collect(deps, task)
  return {
    found: { agent_runs: runs.length, workflow_runs: workflowRuns.length, threads: threads.length, kept_answers: keyedCallIds.length },
  }
}

/**
 * Deletes them. A run of a person that is under way is cancelled; one that has read the document goes when it has ended.
 * Can be repeated.
 */
export async function eraseConversations(deps: ErasingDeps, task: ErasureTask, signal: AbortSignal): Promise<ErasedStep> {
  const { collections } = deps
  const { runs, workflowRuns, threads, keyedCallIds } = await collect(deps, task)
  const isCancelled = task.kind === 'person'
  // Before the runs, which name them: a crash in between leaves the runs.
  for (const _id of threads) await collections.threads.findOneAndDelete({ _id, organizationId: task.organizationId })
  for (const run of runs) {
    signal.throwIfAborted()
    await deps.runs.eraseRun(run, isCancelled)
  }
  for (const run of workflowRuns) {
    signal.throwIfAborted()
    await deps.workflowRuns.eraseRun(run, isCancelled)
  }
  for (const _id of keyedCallIds) await collections.keyedCalls.findOneAndDelete({ _id })
  return { isEmpty: runs.length + workflowRuns.length + threads.length + keyedCallIds.length === 0 }
}

async function collect(deps: ErasingDeps, task: ErasureTask): Promise<Conversations> {
  const { collections } = deps
  return task.kind === 'person' ? collectOfPerson(collections, task) : collectQuotes(collections, task)
}

/** What began before the erasure was asked for. A person may go on meanwhile. */
async function collectOfPerson(collections: Collections, { organizationId, apiKeyIds, requestedAt }: ErasureTask): Promise<Conversations> {
  const isOf = ({ apiKeyId, startedAt }: RunBase) => apiKeyIds.includes(apiKeyId) && startedAt <= requestedAt
  const runs = await findAll(collections.runs, organizationId, isOf, toRun)
  const workflowRuns = await findAll(collections.workflowRuns, organizationId, isOf, toRun)
  const named = new Set(runs.map(({ threadId }) => threadId))
  // A thread outlives its runs. Its id tells when it began.
  const isTheirs = ({ _id, by = [] }: ThreadRecord) =>
    named.has(_id) || (by.some((key) => apiKeyIds.includes(key)) && (timeOfId(_id) ?? 0) <= requestedAt.getTime())
  const threads = await findAll(collections.threads, organizationId, isTheirs, ({ _id }) => _id)
  const keyedCallIds: string[] = []
  for (const apiKeyId of apiKeyIds) {
    for (let after = `${apiKeyId}:`; ; ) {
      const page = await collections.keyedCalls.find({ _id: { $gt: after, $lt: `${apiKeyId};` } }, { limit: FEW })
      keyedCallIds.push(...page.flatMap(({ _id, state, startedAt }) => (state === 'ended' && startedAt <= requestedAt ? _id : [])))
      if (page.length < FEW) break
      after = page.at(-1)!._id
    }
  }
  return { runs, workflowRuns, threads, keyedCallIds }
}

/** Runs whose records or events name the document or one of its passages, and the threads of these runs. */
async function collectQuotes(collections: Collections, { organizationId, documentIds }: ErasureTask): Promise<Conversations> {
  // The ids of passages have the digits of their document.
  const digits = documentIds.map((id) => id.slice(id.indexOf('_') + 1))
  const names = (text: string) => digits.some((each) => text.includes(each))
  const quotes = async (run: RunBase) => names(JSON.stringify(run)) || (await anyEvent(collections, run._id, names))
  const runs = await findAll(collections.runs, organizationId, quotes, toRun)
  const workflowRuns = await findAll(collections.workflowRuns, organizationId, quotes, toRun)
  const threads: string[] = []
  for (const _id of new Set(runs.flatMap(({ threadId }) => threadId ?? [])))
    if (await collections.threads.findOne({ _id, organizationId })) threads.push(_id)
  return { runs, workflowRuns, threads, keyedCallIds: [] }
}

async function anyEvent({ runEvents }: Collections, runId: string, matches: (text: string) => boolean): Promise<boolean> {
  for (let after = 0; ; ) {
    const events = await runEvents.find({ runId, sequence: { $gt: after } }, { sort: { sequence: 1 }, limit: FEW })
    if (events.some(({ event }) => matches(event))) return true
    if (events.length < FEW) return false
    after = events.at(-1)!.sequence
  }
}

function toRun({ _id, organizationId, job, status, ...rest }: RunBase & { readonly threadId?: string | null }): Run {
  return { _id, organizationId, status, ...(job && { job }), threadId: rest.threadId ?? null }
}

async function findAll<T extends { readonly _id: string }, Item>(
  records: DocumentCollection<T>,
  organizationId: string,
  isWanted: (record: T) => boolean | Promise<boolean>,
  toItem: (record: T) => Item,
): Promise<readonly Item[]> {
  const found: Item[] = []
  for (let after = ''; ; ) {
    const page = await records.find({ organizationId, _id: { $gt: after } }, { sort: { _id: 1 }, limit: FEW })
    for (const record of page) if (await isWanted(record)) found.push(toItem(record))
    if (page.length < FEW) return found
    after = page.at(-1)!._id
  }
}
