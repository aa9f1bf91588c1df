import type { DatabaseSync } from 'node:sqlite'
import { toStorageFailure } from './database.ts'

/** Deletions within this time are erased together. */
const ERASE_AFTER_MS = 5_000
/** How soon to try again when a reader was in the way. */
const RETRY_MS = 1_000
/** How long writes of this thread wait for readers of the log. Most reads take a few milliseconds. */
const WAIT_FOR_READERS_MS = 50
/**
 * Packing a file of this size takes about 0.2 s, in which its writes, and so calls of models, wait. The copy is in
 * memory meanwhile.
 */
const MAX_PACKED_BYTES = 32 * 1024 * 1024
/** Packing takes at most one part in this many of the thread's time: the largest file is packed once a minute. */
const PACKING_SHARE = 300

/**
 * Erases deleted data from the file, for its one writing connection. `secure_delete` zeroes deleted rows at once. Soon
 * after, the write-ahead log is cut, because it has the earlier pages. The file is also packed, unless it is too large:
 * when SQLite moves rows between pages, copies stay in unused space of a page, which `secure_delete` does not see
 * (`rebuildPage` in `btree.c`). What an earlier process or version has left is erased after the start.
 */
export class Eraser implements Disposable {
  readonly #database: DatabaseSync
  readonly #isBroken: () => boolean
  #timer: NodeJS.Timeout | undefined
  #isPacked = false
  #mayPackAt = 0

  /** `isBroken`: the storage has failed, so nothing may be written any more. */
  constructor(database: DatabaseSync, isBroken = () => false) {
    this.#database = database
    this.#isBroken = isBroken
    this.deleted()
  }

  /** Call it after a deletion, whose commit comes before the thread's next turn. */
  deleted(): void {
    this.#isPacked = false
    this.#eraseIn(ERASE_AFTER_MS)
  }

  /** Erases what is pending. Closing the last connection removes the log. */
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

  /** False: the storage failed this time. */
  #attempt(work: () => boolean): boolean {
    if (this.#isBroken()) return false
    try {
      return work()
    } catch (error) {
      if (!toStorageFailure(error)) throw error
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

  /** False while a reader needs the log. */
  #cutLog(): boolean {
    const timeout = this.#read('busy_timeout')
    this.#database.exec(`PRAGMA busy_timeout=${WAIT_FOR_READERS_MS}`)
    try {
      return this.#read('wal_checkpoint(TRUNCATE)') === 0
    } finally {
      this.#database.exec(`PRAGMA busy_timeout=${timeout}`)
    }
  }

  /** The first column of a pragma's result. */
  #read(pragma: string): number {
    return Number(Object.values(this.#database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  }
}
