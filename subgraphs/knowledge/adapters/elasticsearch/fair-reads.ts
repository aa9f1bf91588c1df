import { TooBusy } from '../../../common/errors.ts'
import { acquireWithTimeout, FairSemaphore, orTooBusy } from '../../../common/process/fair-semaphore.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { MAX_CONNECTIONS } from './client.ts'

/**
 * Reads at once. Each has one request at a time, so a quarter of the connections is left to writes, deletions and
 * `ping`.
 */
const READS_AT_ONCE = (3 * MAX_CONNECTIONS) / 4
/** Searches of an organization that wait, as with the embedded index. A caller beyond should be told to come back. */
export const MAX_WAITING_SEARCHES = 256
/** Reads of passages that wait, with the searches. Those of a search that has begun should still find room. */
const MAX_WAITING_READS = 1_024
/** A call that has no place by then is refused. */
const MAX_WAIT_MS = 5_000

/** Takes turns with organizations, for what belongs to none. */
const NOBODY = ''

/** For reads that run although their caller has left. */
const NO_END = new AbortController().signal

interface ReadLimits {
  /** A call is refused when so many of the organization wait. */
  readonly maxWaiting?: number
  readonly signal?: AbortSignal
}

/** Reads of collections, by turns of their organizations. So none fills the connections to the index. */
export class FairReads {
  readonly #readOrganization: (collectionId: string) => Promise<string | undefined>
  readonly #permits = new FairSemaphore(READS_AT_ONCE, MAX_WAITING_READS)
  /** Of collections, by id. It never changes for one. */
  readonly #organizations = new Map<string, Promise<string>>()

  /** `readOrganization` asks the index whose the collection is; undefined: it does not exist. */
  constructor(readOrganization: (collectionId: string) => Promise<string | undefined>) {
    this.#readOrganization = readOrganization
  }

  /**
   * Gives what `read` gives. It may have one request to the index at a time.
   * @throws {TooBusy} too many calls of the organization wait, or its turn did not come in time
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

  /** The collection has been dropped. */
  evict(collectionId: string): void {
    this.#organizations.delete(collectionId)
  }

  /** Calls at once share one answer. */
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
      // It may exist later.
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
