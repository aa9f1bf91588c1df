import {
  MongoBulkWriteError,
  MongoClientClosedError,
  MongoDriverError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  MongoUnexpectedServerResponseError,
  MongoWriteConcernError,
} from 'mongodb'
import { ServiceUnavailable } from '../../errors.ts'
import { DuplicateKey } from '../../ports/document-store.ts'

const BAD_VALUE = 2
const DUPLICATE_KEY = 11000
const OUT_OF_DISK_SPACE = 14031
const SNAPSHOT_TOO_OLD = 239
const TOO_OLD =
  'MongoDB discarded the snapshot before everything was read. Let it retain four hours of history, on every member: db.adminCommand({ setParameter: 1, minSnapshotHistoryWindowInSeconds: 14400 }). The default is 300. Then begin again'

/** The server cannot serve now, or the outcome of a write is unknown. Names as in mongod's `error_codes.yml`. */
const UNAVAILABLE_CODES: ReadonlySet<unknown> = new Set([
  6, // HostUnreachable
  7, // HostNotFound
  13, // Unauthorized: the user had the rights at the start
  18, // AuthenticationFailed: as above
  24, // LockTimeout
  43, // CursorNotFound: the server has restarted, or another one has taken over
  46, // LockBusy
  50, // MaxTimeMSExpired
  64, // WriteConcernTimeout
  79, // UnknownReplWriteConcern
  89, // NetworkTimeout
  91, // ShutdownInProgress
  100, // UnsatisfiableWriteConcern
  112, // WriteConflict
  133, // FailedToSatisfyReadPreference
  134, // ReadConcernMajorityNotAvailableYet
  150, // StaleEpoch
  175, // QueryPlanKilled
  189, // PrimarySteppedDown
  202, // NetworkInterfaceExceededTimeLimit
  246, // SnapshotUnavailable: a collection or an index was created after the moment of the snapshot
  262, // ExceededTimeLimit
  276, // IndexBuildAborted
  285, // IndexBuildAlreadyInProgress
  365, // TemporarilyUnavailable
  384, // ConnectionError
  462, // IngressRequestRateLimitExceeded
  9001, // SocketException
  10058, // LegacyNotPrimary
  10107, // NotWritablePrimary
  11600, // InterruptedAtShutdown
  11601, // Interrupted
  11602, // InterruptedDueToReplStateChange
  13435, // NotPrimaryNoSecondaryOk
  13436, // NotPrimaryOrSecondary
  OUT_OF_DISK_SPACE,
])

/** A connection broke during a write: the driver passes on the socket's own error. */
const SOCKET_CODES: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
])

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY
}

/**
 * True: the operation was waiting for a connection when another one broke, and was never sent. Any such operation may
 * be repeated.
 */
export function wasNotSent(error: unknown): boolean {
  // The driver does not export a class for it.
  return error instanceof MongoNetworkError && error.name === 'MongoPoolClearedError'
}

export function isDiskFull(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === OUT_OF_DISK_SPACE
}

/** The query names an index that has been dropped, or is still being built. */
function lacksIndex(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === BAD_VALUE && /hint provided does not correspond/.test(error.message)
}

/** Returns the part of the reason that callers may know. */
function reasonOf(error: unknown): { readonly why?: string } {
  if (isDiskFull(error)) return { why: 'the disk is full' }
  return lacksIndex(error) ? { why: 'an index is missing or still being built' } : {}
}

/** Translates an error of the driver to one of the port. Returns an unexpected error unchanged. */
export function translated(error: unknown, collection: string, what: string): unknown {
  if (error instanceof MongoServerError && error.code === SNAPSHOT_TOO_OLD) return new Error(TOO_OLD, { cause: error })
  if (isUnavailable(error) || lacksIndex(error)) return new ServiceUnavailable(what, { cause: error, ...reasonOf(error) })
  return isDuplicateKey(error) ? new DuplicateKey(collection, error) : error
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof MongoError)) return error instanceof Error && SOCKET_CODES.has((error as NodeJS.ErrnoException).code)
  // A bulk error wraps the failure of the whole batch.
  if (error instanceof MongoBulkWriteError && (error.result.getWriteConcernError() || isUnavailable(error.errorResponse))) return true
  return (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof MongoWriteConcernError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoTopologyClosedError ||
    error instanceof MongoServerClosedError ||
    error instanceof MongoClientClosedError ||
    error instanceof MongoUnexpectedServerResponseError ||
    // The driver does not export classes for these.
    (error instanceof MongoDriverError && ['MongoWaitQueueTimeoutError', 'MongoPoolClosedError'].includes(error.name)) ||
    UNAVAILABLE_CODES.has(error.code) ||
    error.hasErrorLabel('RetryableWriteError') ||
    error.hasErrorLabel('SystemOverloadedError')
  )
}
