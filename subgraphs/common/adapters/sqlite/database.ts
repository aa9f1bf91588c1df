import { existsSync, mkdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementResultingChanges } from 'node:sqlite'
import type { Installation } from '../../identity/installation.ts'
import { Corrupted, Unfit } from '../../process/opening.ts'
import { checkMark } from './store-mark.ts'

/** The kind of a file. It prevents a store from opening the file of another store, or of a newer version. */
export interface FileKind {
  /** The name of the kind in errors. */
  readonly name: string
  /** SQLite's `application_id`. */
  readonly applicationId: number
  /** SQLite's `user_version`: the version that this program reads and writes. */
  readonly schemaVersion: number
  /** Bytes of a page. Fixed when the file is created. */
  readonly pageSize: number
}

/** Readers wait only for the last moment of a checkpoint. A longer wait is a fault. */
export const BUSY_TIMEOUT_MS = 2_000
/** Page cache of one connection, in KiB. */
const CACHE_KIB = 16 * 1024
/**
 * After a checkpoint the write-ahead log is truncated to this size, so that one large write does not occupy its space
 * forever.
 */
const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
const MAX_STATEMENTS = 500

/** The facts of a storage failure that cross threads. */
export interface FailureFacts {
  readonly kind: 'disk_full' | 'damaged' | 'failing'
  /**
   * True after a failed fsync. The contents of the disk are then unknown, and another fsync may succeed although data
   * was lost.
   */
  readonly isFinal: boolean
}

/** A failure of the storage, not of the caller: a full disk, a failing disk, a corrupted file. */
export class StorageFailure extends Error {
  readonly data: FailureFacts

  constructor(cause: Error, data: FailureFacts) {
    super(cause.message, { cause })
    this.name = 'StorageFailure'
    this.data = data
  }
}

/** From https://www.sqlite.org/rescode.html */
const SQLITE_ERROR = 1
const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CONSTRAINT = 19
const SQLITE_MISUSE = 21
const SQLITE_RANGE = 25
const SQLITE_NOTADB = 26
const SQLITE_IOERR_FSYNC = 1034
const SQLITE_IOERR_DIR_FSYNC = 1290
const UNIQUE_VIOLATIONS: readonly number[] = [1555, 2067]

function readCode(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE_VIOLATIONS.includes(readCode(error) ?? 0)
}

/** Returns the storage failure behind `error`; undefined for a defect of this program. */
export function toStorageFailure(error: unknown): StorageFailure | undefined {
  if (error instanceof StorageFailure) return error
  const code = readCode(error)
  if (code === undefined || [SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_RANGE].includes(code & 0xff)) return undefined
  const isCorrupted = [SQLITE_CORRUPT, SQLITE_NOTADB].includes(code & 0xff)
  const kind = isCorrupted ? 'damaged' : (code & 0xff) === SQLITE_FULL ? 'disk_full' : 'failing'
  return new StorageFailure(error as Error, { kind, isFinal: code === SQLITE_IOERR_FSYNC || code === SQLITE_IOERR_DIR_FSYNC })
}

/** @throws {StorageFailure} `run` meets one */
export function orFailure<T>(run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw toStorageFailure(error) ?? error
  }
}

/**
 * Returns the error for a failed opening: for a storage failure an error for the operator, else `error` itself. A later
 * attempt may succeed, except with a corrupted file.
 */
export function toOpeningFailure(file: string, error: unknown): unknown {
  const failure = toStorageFailure(error)
  if (failure?.data.kind === 'damaged') return corrupted(file, failure.message, error)
  return failure ? new Unfit([`${file} cannot be opened: ${failure.message}`], { cause: error }) : error
}

/** A file that a newer version of the program has written. */
export class NewerFile extends Error {
  constructor(file: string, version: number, known: number) {
    super(`${file} has schema version ${version}; this program knows ${known}. Start a newer version of the program.`)
    this.name = 'NewerFile'
  }
}

/** Returns the error for a file that SQLite cannot read. */
export function corrupted(file: string, why: string, cause?: unknown): Corrupted {
  return new Corrupted(`${file} is corrupted (${why}). Stop the service, and restore the data folder from a backup.`, { cause })
}

/**
 * Locks the file for this process until disposal or the end of the process: the system drops the locks of a dead
 * process. The lock is on a file beside it, so that all connections of this process can share the file itself. No other
 * code may open the lock file: POSIX drops all locks of a process on a file when the process closes any descriptor of
 * it.
 */
export class FileLock implements Disposable {
  readonly #file: string
  readonly #lock: DatabaseSync

  /**
   * Creates the folder of the file and takes the lock.
   * @throws {Error} another process, or another store of this one, has the lock
   * @throws {Unfit} the storage fails, or the folder cannot be created now: missing rights, a read-only or full disk, a
   * missing mount
   */
  constructor(file: string) {
    try {
      mkdirSync(dirname(file), { recursive: true })
    } catch (cause) {
      throw new Unfit([`the folder of ${file} cannot be created: ${(cause as Error).message}`], { cause })
    }
    using opening = new DisposableStack()
    try {
      this.#lock = opening.use(new DatabaseSync(`${file}.lock`, { timeout: 0 }))
      // The lock is held from the first transaction until the connection is closed.
      this.#lock.exec('PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
    } catch (cause) {
      if (![SQLITE_BUSY, SQLITE_LOCKED].includes((readCode(cause) ?? 0) & 0xff)) throw toOpeningFailure(`${file}.lock`, cause)
      const advice = 'one process opens it at a time. Stop the other one, or give this one a data folder of its own.'
      throw new Error(`${file} is in use: ${advice}`, { cause })
    }
    this.#file = file
    opening.move()
  }

  /**
   * The path of the missing write-ahead log after a process ended without closing the file; null: no log is missing.
   */
  get missingLog(): string | null {
    const { user_version: isInUse } = this.#lock.prepare('PRAGMA user_version').get() as { user_version: number }
    const log = `${this.#file}-wal`
    return isInUse && existsSync(this.#file) && !existsSync(log) ? log : null
  }

  /**
   * Records that from now on the write-ahead log may contain changes that the file does not.
   * @throws {Unfit} the storage fails
   */
  noteOpen(): void {
    this.#note(1)
  }

  /**
   * Moves the write-ahead log into the file through its last connection, which retains the log until then, and records
   * that the log is empty. If either fails, the next start reports a missing log.
   */
  noteClosed(last: DatabaseSync): void {
    try {
      const { busy } = last.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      if (!busy) this.#note(0)
    } catch {
      // The disk is full or fails: the log and the record stay.
    }
  }

  /** The operator accepts the loss of what the missing log contained. */
  acceptLoss(): void {
    this.#note(0)
  }

  #note(isInUse: 0 | 1): void {
    try {
      this.#lock.exec(`PRAGMA user_version=${isInUse}`)
    } catch (error) {
      throw toOpeningFailure(`${this.#file}.lock`, error)
    }
  }

  [Symbol.dispose](): void {
    this.#lock.close()
  }
}

/** @throws {Error} the write-ahead log with the last writes is missing */
export function refuseMissingLog(file: string, { missingLog }: FileLock): void {
  if (missingLog)
    throw new Error(
      `${missingLog} is missing. The process that used ${file} ended without closing it, and what it wrote last was in that log. ` +
        `Restore the log beside the file, or restore the whole data folder from a backup. To continue without its contents, run \`kis accept-loss ${basename(missingLog)}\`.`,
    )
}

/**
 * Creates the file if it does not exist, and checks it. `installation` absent: the mark is not checked.
 * @throws {Error} the file is of another kind, corrupted, of another installation, or newer than this program
 * @throws {Unfit} the storage fails
 */
export function prepareFile(
  file: string,
  { kind, lock, installation }: { readonly kind: FileKind; readonly lock: FileLock; readonly installation?: Installation | undefined },
): void {
  refuseMissingLog(file, lock)
  try {
    using database = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
    const read = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
    const { pageSize, applicationId, schemaVersion } = kind
    const isNew = ['schema_version', 'application_id', 'user_version'].every((pragma) => read(pragma) === 0)
    if (isNew) database.exec(`PRAGMA page_size=${pageSize}`)
    database.exec('PRAGMA journal_mode=WAL; BEGIN IMMEDIATE')
    // One transaction writes the kind and the mark: if the process is killed before the commit, the file is still new.
    if (isNew) database.exec(`PRAGMA application_id=${applicationId}; PRAGMA user_version=${schemaVersion}`)
    if (read('application_id') !== applicationId) throw new Error(`${file} is not the file of a ${kind.name}.`)
    const version = read('user_version')
    if (version > schemaVersion) throw new NewerFile(file, version, schemaVersion)
    if (installation) checkMark(database, file, installation)
    database.exec('COMMIT')
    // This call comes before the last connection closes, which removes the log. If the process is killed in between,
    // the next start must not report a missing log.
    lock.noteClosed(database)
  } catch (error) {
    throw toOpeningFailure(file, error)
  }
}

/**
 * A statement that returns each row as an array of its columns. The caller names the row's type, which the SQL text
 * determines.
 */
interface ArrayStatement {
  all<Row extends readonly unknown[]>(...parameters: SQLInputValue[]): Row[]
  get<Row extends readonly unknown[]>(...parameters: SQLInputValue[]): Row | undefined
  run(...parameters: SQLInputValue[]): StatementResultingChanges
}

/** A connection to a prepared file. A commit is on the disk when it returns. */
export class Connection implements Disposable {
  readonly database: DatabaseSync
  readonly #statements = new Map<string, ArrayStatement>()

  constructor(file: string, options: { readonly readOnly: boolean }) {
    using opening = new DisposableStack()
    this.database = new DatabaseSync(file, { readOnly: options.readOnly, timeout: BUSY_TIMEOUT_MS })
    opening.defer(() => this.database.close())
    // macOS needs `fullfsync` to survive power loss. Elsewhere the setting changes nothing.
    this.database.exec(`
      PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON; PRAGMA temp_store=MEMORY;
      PRAGMA cache_size=-${CACHE_KIB}; PRAGMA journal_size_limit=${JOURNAL_SIZE_LIMIT_BYTES};
      PRAGMA secure_delete=ON`)
    opening.move()
  }

  /**
   * Returns the prepared statement of this text, whose rows are arrays. Read all its rows before you use the statement
   * again.
   */
  prepare(text: string): ArrayStatement {
    let statement = this.#statements.get(text)
    if (!statement) {
      // Texts come from call sites, not from data. If that ever changes, clearing still limits the memory.
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
      const prepared = this.database.prepare(text)
      prepared.setReturnArrays(true)
      // Node's types do not follow `setReturnArrays`.
      statement = prepared as unknown as ArrayStatement
      this.#statements.set(text, statement)
    }
    return statement
  }

  [Symbol.dispose](): void {
    this.#statements.clear()
    this.database.close()
  }
}
