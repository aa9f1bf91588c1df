import { KisError } from '../../../common/errors.ts'
import type { EventRecord } from '../../../common/events/event-log.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { Task } from '../../../common/process/tasks.ts'
import { type CollectionChanges, countChanges, NO_CHANGES } from '../../domain/evaluation/changes.ts'
import type { EvaluationWatchRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { isDocumentEvent } from '../documents/document-events.ts'
import { mayRepeat } from '../may-repeat.ts'
import { createEvaluation, requireEvaluator } from './evaluations.ts'

/** Interval at which watches are checked. */
const POLL_MS = 5_000
/** Watches per read. */
const PAGE = 100
/** Maximum pages of events per organization and round, so that a busy organization does not delay the others. */
const MAX_PAGES = 20
/** How long a collection must be quiet before its evaluation. Documents of one batch follow each other faster. */
const QUIET_MS = 10_000
/** Maximum delay of an evaluation for a collection that is never quiet. */
const MAX_WAIT_MS = 86_400_000
/** Maximum jobs of the organization that are searched for jobs of the collection. */
const MAX_JOBS = 1_000

type WatchDeps = Pick<Deps, 'store' | 'events' | 'accounts' | 'clock' | 'ids' | 'log' | 'wake'>

/** Evaluates watched collections after changes. Several processes may run it concurrently. */
export function watching(deps: WatchDeps): Task {
  return { name: 'look_at_watches', everyMs: POLL_MS, run: (signal) => checkWatches(deps, signal) }
}

/** Checks every watch once. A failing watch does not affect the others. */
export async function checkWatches(deps: WatchDeps, signal: AbortSignal): Promise<void> {
  const { store, events, log } = deps
  for (let after = ''; ; ) {
    const page = await store.evaluationWatches.find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit: PAGE })
    const active = page.filter(({ error }) => error === null)
    const ends = await events.ends([...new Set(active.map(({ organizationId }) => organizationId))])
    for (const watch of active) {
      if (signal.aborted) return
      await checkWatch(deps, watch, ends.get(watch.organizationId) ?? 0, signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn({ err: error, collectionId: watch._id }, 'a watch is checked again')
      })
    }
    if (page.length < PAGE) return
    after = page.at(-1)!._id
  }
}

async function checkWatch(deps: WatchDeps, found: EvaluationWatchRecord, end: number, signal: AbortSignal): Promise<void> {
  const { store, clock } = deps
  const counted = found.position < end ? await countEvents(deps, found) : found
  if (!counted) return
  if (counted.starting) return start(deps, counted, counted.starting, signal)
  const total = countChanges(counted.changes)
  if (total === 0) return
  const now = clock.now()
  const { _id, waitingSince, changedAt } = counted
  if (total !== counted.seen || !changedAt || !waitingSince) {
    await store.evaluationWatches.findOneAndUpdate({ _id }, { $set: { seen: total, changedAt: now, waitingSince: waitingSince ?? now } })
    return
  }
  const nextAt = counted.startedAt ? counted.startedAt.getTime() + counted.minIntervalSeconds * 1_000 : 0
  if (now.getTime() < nextAt) return
  const isQuiet = now.getTime() - changedAt.getTime() >= QUIET_MS && !(await isBusy(deps, counted))
  if (!isQuiet && now.getTime() - waitingSince.getTime() < MAX_WAIT_MS) return
  if ((await store.goldQuestions.countDocuments({ collectionId: _id })) === 0) return
  await moveChanges(deps, counted, now, signal)
}

/** Counts the changes in new events. Returns null if another process has counted them. */
async function countEvents({ store, events }: WatchDeps, watch: EvaluationWatchRecord): Promise<EvaluationWatchRecord | null> {
  let counted: EvaluationWatchRecord | null = watch
  for (let page = 0; page < MAX_PAGES && counted; page++) {
    const { _id, organizationId, position } = counted
    const published = await events.page(organizationId, position)
    if (published.length === 0) return counted
    const own = published.filter((event) => isDocumentEvent(event) && event.data.collectionId === _id)
    const { added, replaced, deleted } = await countKinds({ store }, own)
    counted = await store.evaluationWatches.findOneAndUpdate(
      { _id, position },
      {
        $set: { position: published.at(-1)!.sequence },
        $inc: { 'changes.added': added, 'changes.replaced': replaced, 'changes.deleted': deleted },
      },
    )
  }
  return counted
}

async function countKinds({ store }: Pick<Deps, 'store'>, events: readonly EventRecord[]) {
  const live = events.filter(({ data }) => data.status === 'ready' && data.replacement === null)
  const ids = [...new Set(live.map(({ subject }) => subject))]
  const documents = ids.length === 0 ? [] : await store.documents.find({ _id: { $in: ids } }, { limit: ids.length })
  const replaced = new Set(documents.filter(({ version = 1 }) => version > 1).map(({ _id }) => _id))
  const again = live.filter(({ subject }) => replaced.has(subject)).length
  return { added: live.length - again, replaced: again, deleted: events.filter(({ data }) => data.deleted).length }
}

/** Whether documents of the collection are queued or being processed. */
async function isBusy({ store }: Pick<Deps, 'store'>, { _id: collectionId, organizationId }: EvaluationWatchRecord): Promise<boolean> {
  for (const status of ['queued', 'processing']) if (await store.documents.findOne({ collectionId, listed: true, status })) return true
  for (const field of ['job.organizationId', 'job.slowOrganizationId']) {
    const jobs = await store.documents.find({ [field]: organizationId }, { sort: { 'job.dueAt': 1 }, limit: MAX_JOBS })
    if (jobs.some((document) => document.collectionId === collectionId)) return true
  }
  return false
}

/**
 * Moves the changes from the watch to an evaluation with a new ID. The ID ensures that the evaluation starts once, even
 * after a crash.
 */
async function moveChanges(
  deps: WatchDeps,
  { _id, changes, startedAt }: EvaluationWatchRecord,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const starting = { id: deps.ids('evl'), changes: { ...changes } }
  const begun = await deps.store.evaluationWatches.findOneAndUpdate(
    { _id, startedAt, 'starting.id': null },
    {
      $set: { starting, startedAt: now, seen: 0, changedAt: null, waitingSince: null },
      $inc: addChanges(changes, -1),
    },
  )
  if (begun) await start(deps, begun, starting, signal)
}

/** Increments the counts, because a worker may count other changes concurrently. */
function addChanges(changes: CollectionChanges, times: 1 | -1): Readonly<Record<string, number>> {
  const kinds = Object.keys(NO_CHANGES) as (keyof CollectionChanges)[]
  return Object.fromEntries(kinds.filter((kind) => changes[kind] > 0).map((kind) => [`changes.${kind}`, times * changes[kind]]))
}

async function start(
  deps: WatchDeps,
  watch: EvaluationWatchRecord,
  { id, changes }: NonNullable<EvaluationWatchRecord['starting']>,
  signal: AbortSignal,
): Promise<void> {
  const { store, accounts } = deps
  const { _id, organizationId, apiKeyId, settings, maxFallThousandths } = watch
  const caller = await accounts.findPrincipal(organizationId, apiKeyId, signal)
  if (!caller) return void (await store.evaluationWatches.findOneAndDelete({ _id }))
  if (caller.isSuspended) return
  try {
    if (!(await store.evaluations.findOne({ _id: id }))) {
      const fall = maxFallThousandths === null ? {} : { maxFallThousandths }
      const payer = requirePayer(caller)
      const collection = await getCollection(deps, organizationId, _id)
      await createEvaluation(deps, payer, collection, { _id: id, settings, changes, ...fall })
    }
    await store.evaluationWatches.findOneAndUpdate({ _id, 'starting.id': id }, { $unset: { starting: '' } })
  } catch (error) {
    if (!(error instanceof KisError) || mayRepeat(error)) throw error
    // Another evaluation of the collection is running. This one is started after it.
    if (error.code === 'in_use') return
    const stopped = { error: { code: error.code, message: error.message }, startedAt: null }
    await store.evaluationWatches.findOneAndUpdate(
      { _id, 'starting.id': id },
      { $set: stopped, $unset: { starting: '' }, $inc: addChanges(changes, 1) },
    )
  }
}

/** @throws {KisError} `permission_denied`: the key was revoked or has expired, or may no longer evaluate. */
function requirePayer(caller: Principal): Principal {
  if (caller.isEnded) throw new KisError('permission_denied', 'The key that set the watch has ended. Set it again with another key.')
  return requireEvaluator({ caller })
}
