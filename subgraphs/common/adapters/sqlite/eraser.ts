import type { DatabaseSync } from 'node:sqlite'
import { BUSY_TIMEOUT_MS, toStorageFailure } from './database.ts'

/** Deletions within this time are erased together. */
const ERASE_EVERY_MS = 5_000
/** How long writes of this thread wait for readers of the log. Most reads take a few milliseconds. */
const WAIT_FOR_READERS_MS = 50
/**
 * The largest file that is packed. Packing it takes about 0.2 s, during which its writes, and so model calls, wait. The
 * copy is in memory meanwhile.
 */
const MAX_PACKED_BYTES = 32 * 1024 * 1024
/** Packing takes at most 1/250 of the thread's time: the largest file is packed once a minute. */
const PACKING_SHARE = 250
/** The longest wait for the next packing, so that a slow disk does not delay an erasure for many minutes. */
const MAX_WAIT_FOR_PACKING_MS = 120_000

/**
 * Erases deleted data from the file, for its one writing connection. `secure_delete` zeroes deleted rows at once. Soon
 * after, the write-ahead log is truncated, because it contains the earlier pages. The file is also packed, unless it is
 * too large: when SQLite moves rows between pages, copies stay in unused space of a page, which `secure_delete` does
 * not see (`rebuildPage` in `btree.c`). What an earlier process or version has left is erased after the start.
 */
export class Eraser implements Disposable {
  readonly #database: DatabaseSync
  readonly #isBroken: () => boolean
  readonly #timer = setInterval(() => this.#erase(), ERASE_EVERY_MS).unref()
  #isPacked = false
  #isErased = false
  #mayPackAt = 0

  /** `isBroken`: whether the storage has failed, so that nothing may be written any more. */
  constructor(database: DatabaseSync, isBroken = () => false) {
    this.#database = database
    this.#isBroken = isBroken
  }

  /** Call this method after a deletion. The deletion must be committed before the thread's next tick. */
  deleted(): void {
    this.#isPacked = false
    this.#isErased = false
  }

  /** Erases what is pending. Closing the last connection removes the log. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#mayPackAt = 0
    this.#erase()
  }

  /**
   * Erases pending data. The next interval tries again while a reader needs the log, and after a failure of the
   * storage.
   */
  #erase(): void {
    if (this.#isErased || this.#isBroken()) return
    this.#database.exec(`PRAGMA busy_timeout=${WAIT_FOR_READERS_MS}`)
    try {
      if (!this.#isPacked && performance.now() >= this.#mayPackAt) this.#pack()
      const { busy } = this.#database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      this.#isErased = this.#isPacked && busy === 0
    } catch (error) {
      if (!toStorageFailure(error)) throw error
    } finally {
      this.#database.exec(`PRAGMA busy_timeout=${BUSY_TIMEOUT_MS}`)
    }
  }

  #pack(): void {
    const start = performance.now()
    const size = this.#database.prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size').get()
    if ((size as { bytes: number }).bytes <= MAX_PACKED_BYTES) this.#database.exec('VACUUM')
    const end = performance.now()
    this.#mayPackAt = end + Math.min((end - start) * PACKING_SHARE, MAX_WAIT_FOR_PACKING_MS)
    this.#isPacked = true
  }
}
