import type { DocumentCollection, StoredDocument } from '../../../common/ports/document-store.ts'
import type { Clock } from '../../../common/process/clock.ts'
import { type Metrics, type Reading, readRarely } from '../../../common/telemetry/metrics.ts'
import type { Job } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'

/** Maximum jobs counted per kind. A larger number would not change what an operator does. */
const MAX_COUNTED = 1_000

interface JobRecord extends StoredDocument {
  readonly job?: Job
}

/** Measures the number of jobs and the wait of the oldest. All processes on one store report the same figures. */
export function watchQueue(metrics: Metrics, { store, clock }: Pick<Deps, 'store' | 'clock'>): Disposable {
  const kinds: Readonly<Record<string, DocumentCollection<JobRecord>>> = {
    documents: store.documents as DocumentCollection<never>,
    collections: store.collections as DocumentCollection<never>,
    evaluations: store.evaluations as DocumentCollection<never>,
    reembeddings: store.reembeddings as DocumentCollection<never>,
  }
  const stack = new DisposableStack()
  const perKind = (read: (records: DocumentCollection<JobRecord>, of: string) => Promise<readonly Reading[]>) =>
    readRarely(async () => (await Promise.all(Object.entries(kinds).map(([of, records]) => read(records, of)))).flat())
  stack.use(
    metrics.gauge(
      'kis_jobs',
      perKind(async (records, of) => {
        const now = clock.now()
        const count = (due: object) => records.countDocuments({ 'job.dueAt': due }, { limit: MAX_COUNTED })
        return [
          [await count({ $lte: now }), of, 'due'],
          [await count({ $gt: now }), of, 'begun'],
        ]
      }),
    ),
  )
  stack.use(
    metrics.gauge(
      'kis_job_oldest_seconds',
      perKind(async (records, of) => [[await oldestSeconds(records, clock), of]]),
    ),
  )
  return stack
}

async function oldestSeconds(records: DocumentCollection<JobRecord>, clock: Clock): Promise<number> {
  const now = clock.now()
  const [oldest] = await records.find({ 'job.dueAt': { $lte: now } }, { sort: { 'job.dueAt': 1 }, limit: 1 })
  return oldest?.job ? (now.getTime() - oldest.job.dueAt.getTime()) / 1_000 : 0
}
