import { randomUUID } from 'node:crypto'
import { locks } from 'node:worker_threads'
import { type Claimed, FairJobs } from '../../../common/documents/fair-jobs.ts'
import { HEARTBEAT_MS, releaseAllLeases, renewLease } from '../../../common/documents/jobs.ts'
import { KisError } from '../../../common/errors.ts'
import type { DocumentCollection, StoredDocument } from '../../../common/ports/document-store.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import { keepWorking } from '../../../common/process/keep-working.ts'
import type { WakeUp } from '../../../common/process/wake-up.ts'
import { type Job, newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { sweepBlobs } from '../files/blobs.ts'
import { continueCollectionDeletion, finishDocumentDeletion } from './delete-now.ts'
import { failDocument, ingestDocument, isSuspect, LeaseLost } from './ingest-document.ts'

/**
 * Jobs that one process does at once. One organization gets two of them, which keep both its cores busy, and the others
 * are there for the next; each has a parser process of at most 700 MiB, and waits for embeddings most of the time.
 */
const PLACES = 4
/** When no job is due, it is looked for again after this, or when it is told of one. */
const IDLE_MS = 1_000
const SWEEP_MS = 60_000
/** Changes that a process which died has written and not told are told within this. */
const EVENT_SWEEP_MS = 2_000
/**
 * A failure that a repeat may mend is repeated this often, and for this long, counted from the last step that was done.
 */
const MAX_REPEATS = 6
const MAX_FAILING_MS = 30 * 60_000
const MAX_BACKOFF_MS = 300_000

interface JobRecord extends StoredDocument {
  readonly organizationId: string
  readonly job?: Job
}

export interface WorkOptions {
  /** The store belongs to this process alone: leases found at the start are of workers that are gone. */
  readonly exclusive: boolean
  /** First step of the backoff; the n-th failure waits up to 2^n of it, full jitter. Default 1,000. */
  readonly backoffMs: number
}

/**
 * Runs the jobs of documents and collections until the signal aborts; resolves when the last has stopped and given its
 * lease back.
 */
export async function work(deps: Deps, wakeUp: WakeUp, options: WorkOptions, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = deps
  const logged = (error: unknown) => {
    if (!signal.aborted) log.error({ err: error }, 'a worker failed')
    return false
  }
  if (options.exclusive) {
    // Leases that stay run out by themselves.
    await releaseAllLeases(store.documents, clock).catch(logged)
    await releaseAllLeases(store.collections, clock).catch(logged)
  }
  const underWay = new Set<Promise<unknown>>()
  const next = createJobs(deps, options, signal)
  const begin = async () => {
    const job = await next()
    if (!job) return false
    const done = job
      .work()
      .catch(logged)
      .finally(() => {
        underWay.delete(done)
        job.leave()
        wakeUp.wake()
      })
    underWay.add(done)
    return true
  }
  const keepBeginning = async () => {
    while (!signal.aborted) if (!(await begin().catch(logged))) await wakeUp.wait(IDLE_MS, signal)
  }
  const sweepAllBlobs = async () => {
    while (await sweepBlobs(deps)) if (signal.aborted) return
  }
  await Promise.all([
    keepBeginning(),
    keepWorking(() => deps.events.sweep(), { clock, pauseMs: EVENT_SWEEP_MS, failed: logged }, signal),
    keepWorking(sweepAllBlobs, { clock, pauseMs: SWEEP_MS, failed: logged }, signal),
  ])
  await Promise.all(underWay)
}

/**
 * Gives the next job, leased and with its place; null: none is due. Of an organization collections go first: they are
 * few, and documents may be due without end.
 */
function createJobs(deps: Deps, { backoffMs }: WorkOptions, signal: AbortSignal) {
  const { store, clock } = deps
  const places = new FairPlaces(PLACES)
  const collections = new FairJobs(store.collections, places, clock)
  const documents = new FairJobs(store.documents, places, clock)
  // The lock of the ingestions of this process: shared, and exclusive for a suspect.
  const floor = `ingestion ${randomUUID()}`
  const job = <T extends JobRecord>(
    records: DocumentCollection<T>,
    { record, leave }: Claimed<T>,
    run: (signal: AbortSignal) => Promise<unknown>,
  ) => ({ leave, work: () => underLease(deps, records, record, signal, backoffMs, run) })
  return async () => {
    const collection = await collections.claim()
    if (collection) return job(store.collections, collection, () => continueCollectionDeletion(deps, collection.record))
    const document = await documents.claim()
    if (!document) return null
    const { record } = document
    return job(store.documents, document, (ended) =>
      record.job!.kind === 'delete'
        ? finishDocumentDeletion(deps, record)
        : isSuspect(record)
          ? alone(floor, ended, (gotOn) => ingestDocument(deps, record, ended, gotOn))
          : locks.request(floor, { mode: 'shared', signal: ended }, () => ingestDocument(deps, record, ended)),
    )
  }
}

/** Runs a suspect alone until it has got on. Then it is as all others, which wait no longer. */
async function alone(floor: string, signal: AbortSignal, ingest: (gotOn: () => void) => Promise<void>): Promise<void> {
  let running: Promise<void> | undefined
  await locks.request(floor, { mode: 'exclusive', signal }, () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    running = ingest(resolve)
    return Promise.race([promise, running.catch(() => undefined)])
  })
  await locks.request(floor, { mode: 'shared' }, () => running)
}

/** Keeps the lease alive beside the work, and records how the work failed. */
async function underLease<T extends JobRecord>(
  deps: Deps,
  records: DocumentCollection<T>,
  record: T,
  signal: AbortSignal,
  backoffMs: number,
  run: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const lost = new AbortController()
  const heartbeat = setInterval(async () => {
    if (!(await renewLease(records, deps.clock, record).catch(() => true))) lost.abort(new LeaseLost())
  }, HEARTBEAT_MS)
  try {
    await run(AbortSignal.any([signal, lost.signal]))
  } catch (error) {
    if (error instanceof LeaseLost || lost.signal.aborted) return
    if (signal.aborted) await giveBack(deps, records, record)
    else await recordFailure(deps, records, record, backoffMs, error)
  } finally {
    clearInterval(heartbeat)
  }
}

/** The process stops: the job is due for the next one at once, and this start does not count. */
async function giveBack<T extends JobRecord>({ clock }: Deps, records: DocumentCollection<T>, { _id, job }: T): Promise<void> {
  await records.findOneAndUpdate(
    { _id, 'job.lease': job!.lease },
    { $set: { 'job.dueAt': clock.now(), 'job.lease': null, 'job.starts': 0 } },
  )
}

/**
 * Due again after a while with full jitter; after too many failures the document fails for good. While a store, billing
 * or inference is not there, no failure is counted: however long that lasts, nothing is lost by it.
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
  const isOutage = error instanceof KisError && error.code === 'service_unavailable'
  const outages = isOutage ? (current.outages ?? 0) + 1 : 0
  const failures = isOutage ? current.failures : current.failures + 1
  // Outages do not count against the retry window.
  const firstFailureAt = isOutage ? null : (current.firstFailureAt ?? now)
  log.warn({ err: error, id: record._id, failures, outages }, 'a job failed and is repeated')
  const exhausted = firstFailureAt !== null && (failures > MAX_REPEATS || now.getTime() - firstFailureAt.getTime() > MAX_FAILING_MS)
  const document =
    exhausted && current.kind === 'ingest' && (await deps.store.documents.findOne({ _id: record._id, 'job.lease': current.lease }))
  if (document) {
    const reason = error instanceof KisError ? error.message : 'The service failed to process the document.'
    const ended = await failDocument(deps, document, 'embedding_failed', reason).then(
      () => true,
      () => false,
    )
    if (ended) return
  }
  const delayMs = Math.random() * Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (isOutage ? outages : failures))
  await records.findOneAndUpdate(
    { _id: record._id, 'job.lease': current.lease },
    {
      $set: {
        job: { ...newJob(current.kind, record.organizationId, new Date(now.getTime() + delayMs)), failures, firstFailureAt, outages },
      },
    },
  )
}
