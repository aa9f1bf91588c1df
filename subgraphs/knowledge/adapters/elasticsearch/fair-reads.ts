import { TooBusy } from '../../../common/errors.ts'
import { acquireWithTimeout, FairSemaphore, orTooBusy } from '../../../common/process/fair-semaphore.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { MAX_CONNECTIONS } from './client.ts'

/**
 * Maximum concurrent reads. Each has one request at a time, so a quarter of the connections is left to writes,
 * deletions and `ping`.
 */
const READS_AT_ONCE = (3 * MAX_CONNECTIONS) / 4
/**
 * Maximum waiting searches per organization, as with the embedded index. Callers beyond are refused with a hint to
 * retry.
 */
export const MAX_WAITING_SEARCHES = 256
/**
 * Maximum waiting reads of chunks per organization, searches included. The limit is higher, so that a running search
 * can still read its chunks.
 */
const MAX_WAITING_READS = 1_024
/** A call without a permit after this time is refused. */
const MAX_WAIT_MS = 5_000

/** The fair queue's key for collections of no organization. */
const NOBODY = ''

/** The signal of reads that continue after their caller has aborted. */
const NO_END = new AbortController().signal

interface ReadLimits {
  /** A call is refused if this number of the organization's calls wait. */
  readonly maxWaiting?: number
  readonly signal?: AbortSignal
}

/** Limits concurrent reads, round robin by organization, so that none occupies all connections to the index. */
export class FairReads {
  readonly #readOrganization: (collectionId: string) => Promise<string | undefined>
  readonly #permits = new FairSemaphore(READS_AT_ONCE, MAX_WAITING_READS)
  /** Organization by collection ID. It never changes. */
  readonly #organizations = new Map<string, Promise<string>>()

  /** `readOrganization` queries the index for a collection's organization. Undefined: the collection does not exist. */
  constructor(readOrganization: (collectionId: string) => Promise<string | undefined>) {
    this.#readOrganization = readOrganization
  }

  /**
   * Runs `read` with a permit and returns its result. `read` may have one request to the index at a time.
   * @throws {TooBusy} too many calls of the organization wait, or no permit became free in time
   * @throws the reason of the aborted signal
   */
  async run<R>(
    collectionId: string,
    read: () => Promise<R>,
    { maxWaiting = MAX_WAITING_READS, signal = NO_END }: ReadLimits = {},
  ): Promise<R> {
    const organizationId = await untilAborted(this.#organizationOf(collectionId), signal)
    if (this.#permits.waitingOf(organizationId) >= maxWaiting) throw new TooBusy(tooMany(organizationId))
    return this.#withPermit(organizationId, read, signal)
  }

  /** Call it when the collection was dropped. */
  evict(collectionId: string): void {
    this.#organizations.delete(collectionId)
  }

  /** Concurrent calls share one request. */
  #organizationOf(collectionId: string): Promise<string> {
    let organization = this.#organizations.get(collectionId)
    if (!organization) {
      organization = this.#fetchOrganization(collectionId)
      this.#organizations.set(collectionId, organization)
    }
    return organization
  }

  async #fetchOrganization(collectionId: string): Promise<string> {
    let organizationId: string | undefined
    try {
      organizationId = await this.#withPermit(NOBODY, () => this.#readOrganization(collectionId), NO_END)
    } finally {
      // The collection may be created later.
      if (organizationId === undefined) this.evict(collectionId)
    }
    return organizationId ?? NOBODY
  }

  async #withPermit<R>(organizationId: string, read: () => Promise<R>, signal: AbortSignal): Promise<R> {
    const release = await acquireWithTimeout(this.#permits, organizationId, MAX_WAIT_MS, signal).catch(orTooBusy(tooMany(organizationId)))
    try {
      return await read()
    } finally {
      release()
    }
  }
}

function tooMany(organizationId: string): string {
  return `Too many calls${organizationId && ' of your organization'} wait for the chunk index.`
}
