import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { toOpeningFailure } from '../../subgraphs/common/adapters/sqlite/database.ts'

/**
 * How long to wait for a file's lock while those of earlier files are held. All writes to these wait too, and the
 * service gives up after 2 s.
 */
const NEXT_LOCK_MS = 200
/** How long to wait for the first lock. Nobody waits for it meanwhile. */
const FIRST_LOCK_MS = 5_000
/** Attempts to get all locks. Writes of a busy service may win many times. */
const MAX_TRIES = 100
const SQLITE_BUSY = 5

/** Read-only connections by the path of their file. The transactions of all connections show the same moment. */
export class Snapshot implements Disposable {
  readonly createdAt: Date
  readonly #connections: ReadonlyMap<string, DatabaseSync>

  private constructor(connections: ReadonlyMap<string, DatabaseSync>) {
    this.createdAt = new Date()
    this.#connections = connections
  }

  /**
   * Takes the write locks of all files, starts the reading transactions, and releases the locks. While the locks are
   * held nothing is committed anywhere, so the files show one moment, as after a loss of power.
   * @throws {Error} a file cannot be opened, or its lock was not free in time
   */
  static async take(paths: readonly string[]): Promise<Snapshot> {
    for (let tries = 1; ; tries++) {
      const snapshot = attempt(paths, (connections) => new Snapshot(connections))
      if (snapshot) return snapshot
      if (tries === MAX_TRIES) throw new Error('The service writes all the time, so no consistent moment was found. Try again later.')
      await sleep(Math.random() * NEXT_LOCK_MS)
    }
  }

  get(path: string): DatabaseSync {
    return this.#connections.get(path)!
  }

  [Symbol.dispose](): void {
    closeAll(this.#connections)
  }
}

/** Returns null if a lock was not free in time. */
function attempt(paths: readonly string[], create: (connections: ReadonlyMap<string, DatabaseSync>) => Snapshot): Snapshot | null {
  const readers = new Map<string, DatabaseSync>()
  let file = ''
  try {
    for (const path of paths) {
      file = path
      const reader = new DatabaseSync(path, { readOnly: true, timeout: FIRST_LOCK_MS })
      readers.set(path, reader)
      startReading(reader)
    }
    // The locks are closed before the readers, which have opened their files: the last connection that may write would
    // remove the log of a process that was killed.
    using locks = new DisposableStack()
    for (const [index, path] of paths.entries()) {
      file = path
      const lock = new DatabaseSync(path, { timeout: index === 0 ? FIRST_LOCK_MS : NEXT_LOCK_MS })
      locks.defer(() => lock.close())
      lock.exec('BEGIN IMMEDIATE')
    }
    for (const reader of readers.values()) {
      reader.exec('BEGIN')
      startReading(reader)
    }
    return create(readers)
  } catch (error) {
    closeAll(readers)
    if (((error as { readonly errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY) return null
    throw toOpeningFailure(file, error)
  }
}

/** Starts the reading transaction. Its first read opens the file and fixes the moment that it shows. */
function startReading(reader: DatabaseSync): void {
  reader.prepare('SELECT count(*) FROM sqlite_schema').get()
}

function closeAll(connections: ReadonlyMap<string, DatabaseSync>): void {
  for (const connection of connections.values()) connection.close()
}
