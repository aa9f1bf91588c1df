import { type Caller, requireScope } from '../../../common/identity/principal.ts'
import type { Deps } from '../deps.ts'

/** Organizations of one answer: each costs some reads of an index. */
const MAX_QUEUES = 100
/** To count as many jobs takes about a millisecond. */
const MAX_COUNTED = 10_000
/** The fields that name the organization of a job: see `FairLeasable`. */
const ORGANIZATION_FIELDS = ['organizationId', 'slowOrganizationId'] as const

interface IngestionQueue {
  readonly organization: { readonly id: string }
  readonly due: number
  readonly underWay: number
  readonly dueSince: Date | null
}

/**
 * The organizations after `after` whose documents have jobs, by id.
 * @throws {KisError} `permission_denied`: the caller lacks the scope `operator`
 */
export async function listIngestionQueues(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  caller: Caller | null,
  after: string,
): Promise<{ readonly queues: readonly IngestionQueue[]; readonly next: string | null }> {
  requireScope(caller, 'operator')
  const queues: IngestionQueue[] = []
  let seen = after
  while (queues.length < MAX_QUEUES) {
    const found = await Promise.all(ORGANIZATION_FIELDS.map((organizationField) => findNext({ store }, organizationField, seen)))
    const [next] = found.filter((id) => id !== null).sort()
    if (next === undefined) return { queues, next: null }
    queues.push(await readQueue({ store }, next, clock.now()))
    seen = next
  }
  return { queues, next: seen }
}

async function findNext(
  { store }: Pick<Deps, 'store'>,
  organizationField: (typeof ORGANIZATION_FIELDS)[number],
  after: string,
): Promise<string | null> {
  const field = `job.${organizationField}`
  const [next] = await store.documents.find({ [field]: { $gt: after } }, { sort: { [field]: 1, 'job.dueAt': 1 }, limit: 1 })
  return next?.job?.[organizationField] ?? null
}

async function readQueue({ store }: Pick<Deps, 'store'>, id: string, now: Date): Promise<IngestionQueue> {
  const counts = await Promise.all(
    ORGANIZATION_FIELDS.map(async (organizationField) => {
      const own = { [`job.${organizationField}`]: id }
      const isDue = { ...own, 'job.dueAt': { $lte: now } }
      const [[first], due, all] = await Promise.all([
        store.documents.find(isDue, { sort: { 'job.dueAt': 1 }, limit: 1 }),
        store.documents.countDocuments(isDue, { limit: MAX_COUNTED }),
        store.documents.countDocuments(own, { limit: MAX_COUNTED }),
      ])
      return { due, underWay: Math.max(0, all - due), dueSince: first?.job?.dueAt ?? null }
    }),
  )
  const times = counts.flatMap(({ dueSince }) => dueSince?.getTime() ?? [])
  return {
    organization: { id },
    due: Math.min(MAX_COUNTED, sum(counts.map(({ due }) => due))),
    underWay: Math.min(MAX_COUNTED, sum(counts.map(({ underWay }) => underWay))),
    dueSince: times.length > 0 ? new Date(Math.min(...times)) : null,
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
