import type { DatabaseSync } from 'node:sqlite'
import { storageFailureOf } from './database.ts'

/** Deletions that come one after the other are erased together. */
const ERASE_AFTER_MS = 5_000
/** A reader was in the way. */
const RETRY_MS = 1_000
/** The writes of this thread wait so long for readers of the log; most read for a few milliseconds. */
const WAIT_FOR_READERS_MS = 50
/** A file of this length is packed in some 0.2 s, in which its writes wait, a call of a model among them; the copy is in memory meanwhile. */
const MAX_PACKED_BYTES = 32 * 1024 * 1024
/** Packing takes one part in so many of the thread's time at most: the longest file is packed once a minute. */
const PACKING_SHARE = 300

/**
 * What was deleted leaves the file, for the one connection that writes it. Its `secure_delete` zeroes the room of deleted rows at once. Soon after,
 * the log is cut, which has the pages as they were before; and the file is packed, unless it is too long for that: when SQLite moves rows between
 * pages, copies of them stay in the unused room of a page, and `secure_delete` does not see them (`rebuildPage` in `btree.c`). What an earlier
 * process, or version, left is erased after the start.
 */
export class Eraser implements Disposable {
  readonly #database: DatabaseSync
  readonly #isBroken: () => boolean
  #timer: NodeJS.Timeout | undefined
  #isPacked = false
  #mayPackAt = 0

  /** `isBroken`: the storage has failed, so that nothing may be written any more. */
  constructor(database: DatabaseSync, isBroken = () => false) {
    this.#database = database
    this.#isBroken = isBroken
    this.deleted()
  }

  /** Something was deleted; its commit comes before the thread's next turn. */
  deleted(): void {
    this.#isPacked = false
    this.#eraseIn(ERASE_AFTER_MS)
  }

  /** Erases what waits. The last connection to close removes the log. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    if (this.#isPacked) return
    this.#mayPackAt = 0
    this.#attempt(() => this.#pack())
  }

  #eraseIn(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#erase()
    }, ms).unref()
  }

  #erase(): void {
    this.#attempt(() => this.#pack())
    if (!this.#attempt(() => this.#cutLog())) this.#eraseIn(RETRY_MS)
    else if (!this.#isPacked) this.#eraseIn(Math.max(RETRY_MS, this.#mayPackAt - performance.now()))
  }

  /** False: the storage could not, at the moment. */
  #attempt(work: () => boolean): boolean {
    if (this.#isBroken()) return false
    try {
      return work()
    } catch (error) {
      if (!storageFailureOf(error)) throw error
      return false
    }
  }

  #pack(): boolean {
    const start = performance.now()
    if (this.#isPacked || start < this.#mayPackAt) return this.#isPacked
    if (this.#read('page_count') * this.#read('page_size') <= MAX_PACKED_BYTES) this.#database.exec('VACUUM')
    this.#mayPackAt = performance.now() + (performance.now() - start) * PACKING_SHARE
    this.#isPacked = true
    return true
  }

  /** False while somebody reads what is only in the log. */
  #cutLog(): boolean {
    const timeout = this.#read('busy_timeout')
    this.#database.exec(`PRAGMA busy_timeout=${WAIT_FOR_READERS_MS}`)
    try {
      return this.#read('wal_checkpoint(TRUNCATE)') === 0
    } finally {
      this.#database.exec(`PRAGMA busy_timeout=${timeout}`)
    }
  }

  /** The first column that a pragma gives. */
  #read(pragma: string): number {
    return Number(Object.values(this.#database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  }
}
