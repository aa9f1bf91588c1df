import { acquireWithTimeout, FairSemaphore, orTooBusy } from '../../process/fair-semaphore.ts'
import { MAX_CONNECTIONS, WAIT_QUEUE_TIMEOUT_MS } from './connection.ts'

/** Of one store at once. The other connections are for reads by key, short pages and writes, such as holds of money. */
const LONG_READS_AT_ONCE = MAX_CONNECTIONS - 18
/** Long reads of one organization that wait, and of the service itself, as with SQLite. */
const MAX_WAITING = 1_000
/** The server ends a long read that takes longer. Below the time after which a connection is given up. */
export const LONG_READ_LIMIT_MS = 10_000

/** Turns of organizations for the long reads of one store. So none fills the connections. */
export class LongReads {
  readonly #permits = new FairSemaphore(LONG_READS_AT_ONCE, MAX_WAITING)

  /**
   * `organizationId` is empty for a read that is for none.
   * @throws {TooBusy} too many reads of the organization wait, or its turn did not come in time
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
