import type { DatabaseSync } from 'node:sqlite'
import { type StorageFailure, toStorageFailure } from './database.ts'

type Transactions = Pick<DatabaseSync, 'exec' | 'isTransaction'>

/**
 * Runs a batch of writes in one transaction, which the first write starts. A write is one statement, or several that
 * need not be atomic: a failed statement undoes only itself, and the batch continues. After a storage failure SQLite
 * may have undone everything, so the whole batch fails. The next batch starts a new transaction, except after a failed
 * fsync.
 */
export class GroupCommit {
  readonly #database: Transactions
  #failure: StorageFailure | undefined

  constructor(database: Transactions) {
    this.#database = database
  }

  /** True when the contents of the disk are unknown. Then nothing more is written. */
  get isBroken(): boolean {
    return this.#failure?.data.isFinal === true
  }

  write<T>(run: () => T): T {
    try {
      if (this.#failure) throw this.#failure
      if (!this.#database.isTransaction) this.#database.exec('BEGIN IMMEDIATE')
      return run()
    } catch (error) {
      this.#failure = toStorageFailure(error)
      throw error
    }
  }

  /**
   * Runs the writes of one batch and commits them.
   * @throws {StorageFailure} the storage failed, and none of the writes is stored
   */
  batch(writes: () => void): void {
    if (!this.isBroken) this.#failure = undefined
    try {
      writes()
      if (!this.#failure && this.#database.isTransaction) this.#database.exec('COMMIT')
    } catch (error) {
      this.#failure = toStorageFailure(error)
      if (!this.#failure) throw error
    } finally {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
    }
    if (this.#failure) throw this.#failure
  }
}
