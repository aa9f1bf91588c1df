import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { Unfit } from '../../opening.ts'

/** What a file holds, so that no store opens another one's file or a file of a newer version of itself. */
export interface FileKind {
  /** In errors. */
  readonly name: string
  /** SQLite's `application_id`. */
  readonly applicationId: number
  /** SQLite's `user_version`: what this program reads and writes. */
  readonly schemaVersion: number
  /** Bytes; fixed when the file is made. */
  readonly pageSize: number
}

/** Readers wait for nobody but a checkpoint's last moment; a longer wait is a fault. */
const BUSY_TIMEOUT_MS = 2_000
/** Of one connection. */
const CACHE_KIB = 16 * 1024
/** The log of changes is cut to this after a checkpoint, so that one large write does not keep its space. */
const JOURNAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
const MAX_STATEMENTS = 500

/** An error of SQLite that is not the caller's: a full disk, a failing one, a damaged file. */
export class StorageFailure extends Error {
  /** True after a failed fsync: what the disk has is unknown then, and another fsync would not tell (it may succeed without having written). */
  readonly data: { readonly isFinal: boolean }

  constructor(cause: Error, isFinal: boolean) {
    super(cause.message, { cause })
    this.name = 'StorageFailure'
    this.data = { isFinal }
  }
}

/** From https://www.sqlite.org/rescode.html. */
const SQLITE_ERROR = 1
const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_CORRUPT = 11
const SQLITE_CONSTRAINT = 19
const SQLITE_MISUSE = 21
const SQLITE_RANGE = 25
const SQLITE_NOTADB = 26
const SQLITE_IOERR_FSYNC = 1034
const SQLITE_IOERR_DIR_FSYNC = 1290
const UNIQUE_VIOLATIONS: readonly number[] = [1555, 2067]

function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : undefined
}

export function isUniqueViolation(error: unknown): boolean {
  return UNIQUE_VIOLATIONS.includes(codeOf(error) ?? 0)
}

/** The storage failure that `error` is; undefined for a defect of ours. */
export function storageFailureOf(error: unknown): StorageFailure | undefined {
  if (error instanceof StorageFailure) return error
  const code = codeOf(error)
  if (code === undefined || [SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_RANGE].includes(code & 0xff)) return undefined
  return new StorageFailure(error as Error, code === SQLITE_IOERR_FSYNC || code === SQLITE_IOERR_DIR_FSYNC)
}

/** Makes the folder of a file. @throws {Unfit} it cannot be made at the moment: no rights, a read-only or full disk, a mount that is missing. */
export function makeFolderOf(file: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
  } catch (error) {
    throw new Unfit([`the folder of ${file} cannot be made: ${(error as Error).message}`], { cause: error })
  }
}

/** What to say of an error: a later try may find the storage mended, but never a file that holds something else. */
function openingFailureOf(what: string, error: unknown): Error {
  const message = `${what} cannot be opened: ${(error as Error).message}`
  const code = codeOf(error) ?? 0
  const isStorage = storageFailureOf(error) && ![SQLITE_CORRUPT, SQLITE_NOTADB].includes(code & 0xff)
  return isStorage ? new Unfit([message], { cause: error }) : new Error(message, { cause: error })
}

/**
 * Keeps the file for this process until it is disposed of or the process ends, however it ends: the system drops a dead process's lock.
 * It is on a file beside it, so that the connections of this process have the file itself to share. Nothing else may open the lock's
 * file: POSIX drops all locks of a process on a file when the process closes any of its descriptors.
 * @throws {Error} another process, or another store of this one, has it. @throws {Unfit} the storage fails.
 */
export function lockFile(file: string): Disposable {
  makeFolderOf(file)
  const lock = opened(`${file}.lock`, { timeout: 0 })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (![SQLITE_BUSY, SQLITE_LOCKED].includes((codeOf(error) ?? 0) & 0xff)) throw openingFailureOf(`${file}.lock`, error)
    throw new Error(`${file} is in use: one process opens it at a time. Stop the other one, or give this one a data folder of its own.`, {
      cause: error,
    })
  }
  return { [Symbol.dispose]: () => lock.close() }
}

function opened(file: string, options: { readonly timeout: number }): DatabaseSync {
  try {
    return new DatabaseSync(file, options)
  } catch (error) {
    throw openingFailureOf(file, error)
  }
}

/** Makes the file when there is none. @throws {Error} it is something else, or newer than this program. @throws {Unfit} the storage fails. */
export function prepareFile(file: string, kind: FileKind): void {
  using closing = new DisposableStack()
  const database = opened(file, { timeout: BUSY_TIMEOUT_MS })
  closing.defer(() => database.close())
  const read = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])
  try {
    const isNew = ['schema_version', 'application_id', 'user_version'].every((pragma) => read(pragma) === 0)
    if (isNew) {
      database.exec(
        `PRAGMA page_size=${kind.pageSize}; PRAGMA application_id=${kind.applicationId}; PRAGMA user_version=${kind.schemaVersion}`,
      )
    }
    database.exec('PRAGMA journal_mode=WAL')
  } catch (error) {
    throw openingFailureOf(`${file}, the ${kind.name},`, error)
  }
  if (read('application_id') !== kind.applicationId) throw new Error(`${file} is not the file of a ${kind.name}.`)
  const version = read('user_version')
  if (version > kind.schemaVersion) {
    throw new Error(
      `${file} has schema version ${version}; this program knows ${kind.schemaVersion}. Start a newer version of the program.`,
    )
  }
}

/** A connection to a prepared file. A commit on it is on the disk when it returns. */
export class Connection implements Disposable {
  readonly database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(file: string, options: { readonly readOnly: boolean }) {
    this.database = new DatabaseSync(file, { readOnly: options.readOnly, timeout: BUSY_TIMEOUT_MS })
    // `fullfsync` is what macOS needs for power loss; elsewhere it changes nothing.
    this.database.exec(`
      PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON; PRAGMA temp_store=MEMORY;
      PRAGMA cache_size=-${CACHE_KIB}; PRAGMA journal_size_limit=${JOURNAL_SIZE_LIMIT_BYTES};
      PRAGMA secure_delete=ON`)
  }

  /** The prepared statement of this text, which gives its rows as arrays. To be run to its end before it is used again. */
  prepare(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (!statement) {
      // Texts come from call sites, not from data; should that fail, starting anew bounds the memory.
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
      statement = this.database.prepare(text)
      statement.setReturnArrays(true)
      this.#statements.set(text, statement)
    }
    return statement
  }

  [Symbol.dispose](): void {
    this.#statements.clear()
    this.database.close()
  }
}
