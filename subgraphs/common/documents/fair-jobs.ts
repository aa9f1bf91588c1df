import type { DocumentCollection, IndexSpec } from '../ports/document-store.ts'
import type { Clock } from '../process/clock.ts'
import type { FairSemaphore } from '../process/fair-semaphore.ts'
import { CLAIM_PAGE, claimSeen, type JobRecord, type Leasable } from './jobs.ts'

/** Organizations that one search for work passes. The next search continues after them. */
const MAX_LOOKED_AT = 100

/** Work of an organization. */
export interface FairLeasable extends Leasable {
  /** The organization of the record. Absent in records of versions without turns. */
  readonly organizationId?: string
  /** Instead of `organizationId` in slow work, whose turns and places are apart from those of other work. */
  readonly slowOrganizationId?: string
  /** Jobs of the organization that are claimed in one turn, if they are due and find places. Absent: 1. */
  readonly weight?: number
}

/** The field that names the organization of a job, in the order of turns. */
type OrganizationField = 'organizationId' | 'slowOrganizationId'

interface FairRecord extends JobRecord {
  readonly organizationId: string
  readonly job?: FairLeasable
}

/** A leased job, with the function that gives back its place in this process. */
export interface Claimed<T> {
  readonly record: T
  readonly release: () => void
}

/** Collections of such records declare this index, besides the one on `job.dueAt`. */
export const FAIR_JOBS_INDEX: IndexSpec = { fields: ['job.organizationId', 'job.dueAt'], sparse: true }

/** Collections with slow work declare this index, too. */
export const SLOW_FAIR_JOBS_INDEX: IndexSpec = { fields: ['job.slowOrganizationId', 'job.dueAt'], sparse: true }

/**
 * Claims the due jobs of one collection so that organizations take turns. A turn goes to the next organization, after
 * that of the last one, that has a due job and may take a place. It is as many claims as the first of its jobs weighs
 * (weighted round robin). A claim costs one read for each organization that it passes, however many jobs they have. Processes that share the store take turns independently.
 */
export class FairJobs<T extends FairRecord> {
  readonly #records: DocumentCollection<T>
  readonly #permits: FairSemaphore
  readonly #clock: Clock
  readonly #field: OrganizationField
  /** The organization of the last claim. */
  #after = ''
  /** Who may claim more in its turn, before others. */
  #current: { readonly organizationId: string; left: number } | null = null
  /** Claims run one after the other, so that two do not get the same turn. */
  #claiming: Promise<unknown> = Promise.resolve()

  /** `places` may be shared by several collections. */
  constructor(records: DocumentCollection<T>, permits: FairSemaphore, clock: Clock, field: OrganizationField = 'organizationId') {
    this.#records = records
    this.#permits = permits
    this.#clock = clock
    this.#field = field
  }

  /** Claims the next job; null: no organization with room has a due job. */
  claim(): Promise<Claimed<T> | null> {
    const claimed = this.#claiming.then(() => this.#claim())
    this.#claiming = claimed.catch(() => undefined)
    return claimed
  }

  async #claim(): Promise<Claimed<T> | null> {
    const now = this.#clock.now()
    const again = await this.#claimForCurrent(now)
    if (again) return again
    const first = this.#after
    let isSecondRound = first === ''
    for (let looked = 0; looked < MAX_LOOKED_AT && !this.#permits.isFull; looked++) {
      const [next] = await this.#records.find(
        { [`job.${this.#field}`]: { $gt: this.#after } },
        { sort: { [`job.${this.#field}`]: 1, 'job.dueAt': 1 }, limit: 1 },
      )
      if (!next && isSecondRound) break
      if (!next) {
        isSecondRound = true
        this.#after = ''
        continue
      }
      if (isSecondRound && first !== '' && next.organizationId > first) break
      this.#after = next.organizationId
      const claimed = next.job!.dueAt <= now && (await this.#claimFor(next.organizationId, now))
      if (!claimed) continue
      const { organizationId, job } = claimed.record
      this.#current = { organizationId, left: (job!.weight ?? 1) - 1 }
      return claimed
    }
    return this.#claimUnassigned(now)
  }

  /** While the organization waits for a place, its turn goes on, and others may claim. */
  async #claimForCurrent(now: Date): Promise<Claimed<T> | null> {
    const current = this.#current
    if (!current?.left || this.#permits.isFull) return null
    const due = await this.#findDue(current.organizationId, now)
    if (due.length === 0) this.#current = null
    const claimed = await this.#claimFirst(due, now)
    if (claimed) current.left -= 1
    return claimed
  }

  async #claimFor(organizationId: string, now: Date): Promise<Claimed<T> | null> {
    return this.#claimFirst(await this.#findDue(organizationId, now), now)
  }

  #findDue(organizationId: string, now: Date): Promise<readonly T[]> {
    const due = { [`job.${this.#field}`]: organizationId, 'job.dueAt': { $lte: now } }
    return this.#records.find(due, { sort: { 'job.dueAt': 1 }, limit: CLAIM_PAGE })
  }

  /** For records of a version without turns, which may still run beside this one. */
  async #claimUnassigned(now: Date): Promise<Claimed<T> | null> {
    if (this.#permits.isFull || this.#field !== 'organizationId') return null
    const due = await this.#records.find({ 'job.dueAt': { $lte: now } }, { sort: { 'job.dueAt': 1 }, limit: CLAIM_PAGE })
    return this.#claimFirst(
      due.filter(({ job }) => job!.organizationId === undefined && job!.slowOrganizationId === undefined),
      now,
    )
  }

  /** Claims the first one that no other process takes before. */
  async #claimFirst(due: readonly T[], now: Date): Promise<Claimed<T> | null> {
    for (const seen of due) {
      const release = this.#permits.tryAcquire(seen.organizationId)
      if (!release) continue
      const record = await claimSeen(this.#records, seen, now).catch((error) => {
        release()
        throw error
      })
      if (record) return { record, release }
      release()
    }
    return null
  }
}
