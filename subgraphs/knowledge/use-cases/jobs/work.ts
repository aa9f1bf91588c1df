import { randomUUID } from 'node:crypto'
import { locks } from 'node:worker_threads'
import { type Claimed, FairJobs } from '../../../common/documents/fair-jobs.ts'
import { HEARTBEAT_MS, releaseAllLeases, renewLease } from '../../../common/documents/jobs.ts'
import { KisError } from '../../../common/errors.ts'
import type { DocumentCollection, StoredDocument } from '../../../common/ports/document-store.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import { renewWhile } from '../../../common/process/renew-while.ts'
import type { Task } from '../../../common/process/tasks.ts'
import type { WakeUp } from '../../../common/process/wake-up.ts'
import { type Job, newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { continueCollectionDeletion, finishDocumentDeletion } from '../documents/delete-now.ts'
import { failDocument, ingestDocument, needsIsolation } from '../documents/ingest-document.ts'
import { LeaseLost, Postponed } from '../documents/lease-lost.ts'
import { settleDocument, tidyDocument } from '../documents/settle-document.ts'
import { evaluate, failEvaluation } from '../evaluation/evaluate.ts'
import { sweepBlobs } from '../files/blobs.ts'
import { isOutage } from '../may-repeat.ts'
import { noteFailure, reembed } from '../reembedding/reembed.ts'
import { sweepUploads } from '../uploads/complete-upload.ts'

/**
 * Jobs that one process runs concurrently. One organization gets at most two, which use both cores. The others stay
 * available for other organizations. Each job has a parser process of at most 700 MiB, and mostly waits for embeddings.
 */
const PERMITS = 4
/**
 * Additional jobs of the slow queue, whose pages need OCR. One of them at a time uses the recognizer, round robin, and
 * the others wait. They do not occupy permits of documents that are read in seconds.
 */
const SLOW_PERMITS = 4
/** Additional re-embeddings. They take hours, mostly waiting for an engine. */
const REEMBEDDING_PERMITS = 2
/** Delay of a job that cannot start yet. */
const POSTPONED_MS = 1_000
/** Poll interval for due jobs while none is due and nothing wakes the worker. */
const IDLE_MS = 1_000
const SWEEP_MS = 60_000
/** Interval at which events of crashed processes are published. */
const EVENT_SWEEP_MS = 2_000
/** Limits of retries after failures: their number, and the time since the last successful step. */
const MAX_RETRIES = 6
const MAX_FAILING_MS = 30 * 60_000
const MAX_BACKOFF_MS = 300_000
/**
 * Limit of the time of retries of a re-embedding. An engine may be unavailable for a day, and the embedded part is worth
 * the wait.
 */
const MAX_REEMBEDDING_FAILING_MS = 24 * 3_600_000

interface JobRecord extends StoredDocument {
  readonly organizationId: string
  readonly job?: Job
}

interface WorkOptions {
  /** True if only this process uses the store. Leases found at startup then belong to dead workers. */
  readonly exclusive: boolean
  /** First step of the backoff, in ms. Default: 1,000. The n-th failure waits a random time of at most 2^n steps. */
  readonly backoffMs: number
}

/**
 * Runs the jobs of documents and collections until the signal aborts. Resolves when the last job has stopped and
 * released its lease.
 */
export async function work(deps: Deps, wakeUp: WakeUp, options: WorkOptions, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = deps
  const logged = (error: unknown) => {
    if (!signal.aborted) log.error({ err: error }, 'a worker failed')
    return false
  }
  if (options.exclusive) {
    // Leases that are not released here expire.
    await releaseAllLeases(store.documents, clock).catch(logged)
    await releaseAllLeases(store.collections, clock).catch(logged)
    await releaseAllLeases(store.evaluations, clock).catch(logged)
    await releaseAllLeases(store.reembeddings, clock).catch(logged)
  }
  const inFlight = new Set<Promise<unknown>>()
  const next = createJobs(deps, options, signal)
  const startNext = async () => {
    const job = await next()
    if (!job) return false
    const done = job
      .work()
      .catch(logged)
      .finally(() => {
        inFlight.delete(done)
        job.release()
        wakeUp.wake()
      })
    inFlight.add(done)
    return true
  }
  while (!signal.aborted) if (!(await startNext().catch(logged))) await wakeUp.wait(IDLE_MS, signal)
  await Promise.all(inFlight)
}

/** Returns the tasks that clean up after crashed processes and unfinished uploads. */
export function sweeps(deps: Deps): readonly Task[] {
  const sweepFiles = async (signal: AbortSignal) => {
    while (await sweepBlobs(deps)) if (signal.aborted) return
    while (await sweepUploads(deps)) if (signal.aborted) return
  }
  return [
    { name: 'publish_events', everyMs: EVENT_SWEEP_MS, run: () => deps.events.sweep() },
    { name: 'sweep_files', everyMs: SWEEP_MS, isShared: true, run: sweepFiles },
  ]
}

/**
 * Returns a function that takes the next due job with a lease and a permit. It returns null if no job is due. Deletions
 * of collections and evaluations precede documents, because they are few, and documents may be due without end.
 */
function createJobs(deps: Deps, { backoffMs }: WorkOptions, signal: AbortSignal) {
  const { store, clock } = deps
  const permits = new FairSemaphore(PERMITS)
  const collections = new FairJobs(store.collections, permits, clock)
  const documents = new FairJobs(store.documents, permits, clock)
  const slow = new FairJobs(store.documents, new FairSemaphore(SLOW_PERMITS), clock, 'slowOrganizationId')
  const evaluations = new FairJobs(store.evaluations, permits, clock)
  const reembeddings = new FairJobs(store.reembeddings, new FairSemaphore(REEMBEDDING_PERMITS), clock)
  // The ingestions of this process share this lock. An isolated job acquires it exclusively.
  const isolationLock = `ingestion ${randomUUID()}`
  const job = <T extends JobRecord>(
    records: DocumentCollection<T>,
    { record, release }: Claimed<T>,
    run: (signal: AbortSignal) => Promise<unknown>,
  ) => ({ release, work: () => underLease(deps, records, record, signal, backoffMs, run) })
  return async () => {
    const collection = await collections.claim()
    if (collection) return job(store.collections, collection, () => continueCollectionDeletion(deps, collection.record))
    const evaluation = await evaluations.claim()
    if (evaluation) return job(store.evaluations, evaluation, (ended) => evaluate(deps, evaluation.record, ended))
    const reembedding = await reembeddings.claim()
    if (reembedding) return job(store.reembeddings, reembedding, (ended) => reembed(deps, reembedding.record, ended))
    const document = (await documents.claim()) ?? (await slow.claim())
    if (!document) return null
    const { record } = document
    return job(store.documents, document, (ended) =>
      record.job!.kind === 'delete'
        ? finishDocumentDeletion(deps, record)
        : record.job!.kind === 'settle'
          ? settleDocument(deps, record._id)
          : record.job!.kind === 'tidy'
            ? tidyDocument(deps, record)
            : needsIsolation(record)
              ? alone(isolationLock, ended, (gotOn) => ingestDocument(deps, record, ended, gotOn))
              : locks.request(isolationLock, { mode: 'shared', signal: ended }, () => ingestDocument(deps, record, ended)),
    )
  }
}

/** Runs an isolated job alone until it has recorded a step. Then it continues beside the others. */
async function alone(isolationLock: string, signal: AbortSignal, ingest: (gotOn: () => void) => Promise<void>): Promise<void> {
  let running: Promise<void> | undefined
  await locks.request(isolationLock, { mode: 'exclusive', signal }, () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    running = ingest(resolve)
    return Promise.race([promise, running.catch(() => undefined)])
  })
  await locks.request(isolationLock, { mode: 'shared' }, () => running)
}

/** Renews the lease while the work runs, and records a failure of the work. */
async function underLease<T extends JobRecord>(
  deps: Deps,
  records: DocumentCollection<T>,
  record: T,
  signal: AbortSignal,
  backoffMs: number,
  run: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const lost = new AbortController()
  const renew = () => renewLease(records, deps.clock, record)
  using _ = renewWhile({ everyMs: HEARTBEAT_MS, renew, lost: () => lost.abort(new LeaseLost()) })
  try {
    await run(AbortSignal.any([signal, lost.signal]))
  } catch (error) {
    if (error instanceof LeaseLost || lost.signal.aborted) return
    if (signal.aborted) await releaseJob(deps, records, record)
    else if (error instanceof Postponed) await postpone(deps, records, record)
    else await recordFailure(deps, records, record, backoffMs, error)
  }
}

/** Releases the job because the process stops. The job is due at once, and this start does not count. */
async function releaseJob<T extends JobRecord>({ clock }: Deps, records: DocumentCollection<T>, { _id, job }: T): Promise<void> {
  await records.findOneAndUpdate(
    { _id, 'job.lease': job!.lease },
    { $set: { 'job.dueAt': clock.now(), 'job.lease': null, 'job.starts': 0 } },
  )
}

/** Releases the job because it cannot start yet. */
async function postpone<T extends JobRecord>({ clock }: Deps, records: DocumentCollection<T>, { _id, job }: T): Promise<void> {
  await records.findOneAndUpdate(
    { _id, 'job.lease': job!.lease },
    { $set: { 'job.dueAt': new Date(clock.now().getTime() + POSTPONED_MS), 'job.lease': null } },
  )
}

/**
 * Reschedules the job after a random backoff. Marks its record as failed after too many failures. An outage of a store,
 * billing or inference and a suspension of the organization are not failures, so no job fails because of them, however
 * long they last.
 */
async function recordFailure<T extends JobRecord>(
  deps: Deps,
  records: DocumentCollection<T>,
  record: T,
  backoffMs: number,
  error: unknown,
): Promise<void> {
  const { clock, log } = deps
  const current = (await records.findOne({ _id: record._id, 'job.lease': record.job!.lease }))?.job
  if (!current) return
  const now = clock.now()
  const waits = isOutage(error)
  const outages = waits ? (current.outages ?? 0) + 1 : 0
  const failures = waits ? current.failures : current.failures + 1
  // An outage does not count against the time limit of retries.
  const firstFailureAt = waits ? null : (current.firstFailureAt ?? now)
  log.warn({ err: error, id: record._id, failures, outages }, 'a job failed and is repeated')
  const failingMs = firstFailureAt === null ? 0 : now.getTime() - firstFailureAt.getTime()
  const isReembedding = current.kind === 'reembed'
  const exhausted = isReembedding
    ? failingMs > MAX_REEMBEDDING_FAILING_MS
    : firstFailureAt !== null && (failures > MAX_RETRIES || failingMs > MAX_FAILING_MS)
  const document =
    exhausted && current.kind === 'ingest' && (await deps.store.documents.findOne({ _id: record._id, 'job.lease': current.lease }))
  if (document) {
    const reason = error instanceof KisError ? error.message : 'The service failed to process the document.'
    const ended = await failDocument(deps, document, reason).then(
      () => true,
      () => false,
    )
    if (ended) return
  }
  const evaluation =
    exhausted && current.kind === 'evaluate' && (await deps.store.evaluations.findOne({ _id: record._id, 'job.lease': current.lease }))
  if (evaluation) return failEvaluation(deps, evaluation, error)
  if (isReembedding) await noteFailure(deps, { _id: record._id, lease: current.lease! }, error, exhausted)
  const delayMs = Math.random() * Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (waits ? outages : failures))
  const again = newJob(current.kind, record.organizationId, new Date(now.getTime() + delayMs), current.weight)
  await records.findOneAndUpdate(
    { _id: record._id, 'job.lease': current.lease },
    { $set: { job: { ...again, failures, firstFailureAt, outages } } },
  )
}
