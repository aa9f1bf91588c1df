import { acquireWithTimeout, FairSemaphore, orTooBusy } from '../../process/fair-semaphore.ts'
import { MAX_CONNECTIONS, WAIT_QUEUE_TIMEOUT_MS } from './connection.ts'

/**
 * Concurrent long reads of one store. The other connections are for reads by key, short pages and writes, such as holds
 * of money.
 */
const LONG_READS_AT_ONCE = MAX_CONNECTIONS - 18
/** Limit of waiting long reads of one organization, and of the service itself, as with SQLite. */
const MAX_WAITING = 1_000
/** The server ends a long read after this time. The limit is below the time after which a connection is closed. */
export const LONG_READ_LIMIT_MS = 10_000

/**
 * Serves the long reads of one store in round robin over the organizations, so that no organization uses all
 * connections.
 */
export class LongReads {
  readonly #permits = new FairSemaphore(LONG_READS_AT_ONCE, MAX_WAITING)

  /**
   * `organizationId` is empty for a read of the service itself.
   * @throws {TooBusy} too many reads of the organization wait, or no permit became free in time
   */
  async run<R>(organizationId: string, read: () => Promise<R>): Promise<R> {
    const why = `Too many reads${organizationId && ' of your organization'} wait.`
    const release = await acquireWithTimeout(this.#permits, organizationId, WAIT_QUEUE_TIMEOUT_MS).catch(orTooBusy(why))
    try {
      return await read()
    } finally {
      release()
    }
  }
}
