import { ServiceUnavailable } from '../../errors.ts'
import { DuplicateKey } from '../../ports/document-store.ts'
import type { Log } from '../../process/log.ts'
import { type Damaged, Unfit } from '../../process/opening.ts'
import { SharedThread } from '../../process/threads/shared-thread.ts'
import { type RemoteError, WorkerClient } from '../../process/threads/worker-rpc.ts'
import { damaged, type FailureFacts, StorageFailure } from './database.ts'

/** A full disk fails every write. The log gets one line in this time. */
const LOG_EVERY_MS = 10_000
/** What callers may know about a failure. */
const WHY = { disk_full: 'the disk is full', damaged: 'it is damaged', failing: 'its storage fails' } as const

/** One SQLite file, and the storage failures that were met in it. */
export class StoreFile {
  readonly path: string
  /** Names the store in errors: `The document store`. */
  readonly what: string
  readonly log: Log
  #damage: Damaged | null = null
  #quietUntil = 0

  constructor({ path, what, log }: { readonly path: string; readonly what: string; readonly log: Log }) {
    this.path = path
    this.what = what
    this.log = log
  }

  /** Gives the caller's error for a failure. The log gets all details; damage is logged once. */
  failed(failure: StorageFailure): ServiceUnavailable {
    const { kind } = failure.data
    if (kind === 'damaged' && this.#damage === null) {
      this.#damage = damaged(this.path, failure.message, failure)
      this.log.error({ err: failure, file: this.path }, 'a SQLite file is damaged')
    } else if (kind !== 'damaged' && performance.now() >= this.#quietUntil) {
      this.#quietUntil = performance.now() + LOG_EVERY_MS
      this.log.error({ err: failure, file: this.path }, WHY[kind])
    }
    return new ServiceUnavailable(this.what, { cause: failure, why: WHY[kind] })
  }

  /** For a `ping`: gives the operator's error for an error of `failed`, and any other unchanged. */
  toProblem(error: unknown): unknown {
    const failure = error instanceof ServiceUnavailable ? error.cause : undefined
    if (!(failure instanceof StorageFailure)) return error
    return this.#damage ?? new Unfit([`${WHY[failure.data.kind]}: ${this.path}: ${failure.message}`], { cause: failure })
  }

  /** True once damage was met. */
  get isDamaged(): boolean {
    return this.#damage !== null
  }

  /** @throws {Damaged} damage was met before */
  checkDamage(): void {
    if (this.#damage) throw this.#damage
  }
}

/** Commits documents, of all files: single writes, of which each waits for the disk. */
export const COMMITS = new SharedThread('commits')
/** Writes blobs and the chunk index, whose transactions take up to 100 ms. */
export const BULK_WRITES = new SharedThread('bulk writes')
/** Reads what would block the event loop too long, from all files. Runs once there is such a read. */
export const SCANS = new SharedThread('scans')

/**
 * Starts code over a prepared file with its first call, in a thread of its own or in a shared one. Storage failures arrive as
 * `service_unavailable`, errors that `revive` knows as what it makes of them.
 */
export function startThread(
  script: URL,
  file: StoreFile,
  { shared, revive }: { readonly shared?: SharedThread; readonly revive?: (error: RemoteError) => Error | undefined } = {},
): WorkerClient {
  const reviveError = (error: RemoteError): Error | undefined => {
    if (error.name === 'DuplicateKey') return new DuplicateKey(String(error.data), error)
    if (error.name !== 'StorageFailure') return revive?.(error)
    return file.failed(new StorageFailure(Object.assign(new Error(error.message), error), error.data as FailureFacts))
  }
  const { log, path, what } = file
  const onExit = (error: unknown) =>
    log.error({ err: error, file: path, script: script.pathname }, 'a thread of a SQLite file has ended: restart the service')
  return new WorkerClient(script, what, { file: path }, { reviveError, onExit, ...(shared && { shared }) })
}
