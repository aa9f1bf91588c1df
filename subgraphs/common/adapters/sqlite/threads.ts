import type { Transferable } from 'node:worker_threads'
import { ServiceUnavailable } from '../../errors.ts'
import { DuplicateKey } from '../../ports/document-store.ts'
import type { Log } from '../../process/log.ts'
import { type Corrupted, Unfit } from '../../process/opening.ts'
import { Thread, ThreadUnavailable } from '../../process/threads/thread.ts'
import type { FileCall } from '../../process/threads/thread-calls.ts'
import { corrupted, type FailureFacts, StorageFailure } from './database.ts'

/** A full disk fails every write. The log gets one line in this interval. */
const LOG_EVERY_MS = 10_000
/** The reasons of failures that callers may know. */
const WHY = { disk_full: 'the disk is full', damaged: 'it is corrupted', failing: 'its storage fails' } as const

/** One SQLite file, and the storage failures that occurred in it. */
export class StoreFile {
  readonly path: string
  /** The name of the store in errors: `The document store`. */
  readonly what: string
  readonly log: Log
  /** Not null once corruption was found. */
  corruption: Corrupted | null = null
  #quietUntil = 0

  constructor({ path, what, log }: { readonly path: string; readonly what: string; readonly log: Log }) {
    this.path = path
    this.what = what
    this.log = log
  }

  /** Returns the caller's error for a failure. The log gets all details; corruption is logged once. */
  failed(failure: StorageFailure): ServiceUnavailable {
    const { kind } = failure.data
    if (kind === 'damaged' && this.corruption === null) {
      this.corruption = corrupted(this.path, failure.message, failure)
      this.log.error({ err: failure, file: this.path }, 'a SQLite file is corrupted')
    } else if (kind !== 'damaged' && performance.now() >= this.#quietUntil) {
      this.#quietUntil = performance.now() + LOG_EVERY_MS
      this.log.error({ err: failure, file: this.path }, WHY[kind])
    }
    return new ServiceUnavailable(this.what, { cause: failure, why: WHY[kind] })
  }

  /** Returns the caller's error for an error of a thread. `revive` recreates the store's own errors. */
  toCallerError(error: unknown, revive = (own: Error): unknown => own): unknown {
    if (error instanceof ThreadUnavailable) {
      this.log.error({ err: error, file: this.path }, 'a thread of a SQLite file has died')
      return new ServiceUnavailable(this.what, { cause: error })
    }
    if (!(error instanceof Error) || !('data' in error)) return error
    if (error.name === 'DuplicateKey') return new DuplicateKey(String(error.data), error)
    return error.name === 'StorageFailure' ? this.failed(new StorageFailure(error, error.data as FailureFacts)) : revive(error)
  }

  /** Returns the operator's error for an error of `failed`, and any other error unchanged, for a `ping`. */
  toProblem(error: unknown): unknown {
    const failure = error instanceof ServiceUnavailable ? error.cause : undefined
    if (!(failure instanceof StorageFailure)) return error
    return this.corruption ?? new Unfit([`${WHY[failure.data.kind]}: ${this.path}: ${failure.message}`], { cause: failure })
  }
}

/** The thread that commits documents of all files: single writes, each of which waits for the disk. */
export const COMMITS = new Thread()
/** The thread that writes blobs and the chunk index, whose transactions take up to 100 ms. */
export const BULK_WRITES = new Thread()
/** The thread for reads of all files that would block the event loop too long. It starts with the first such read. */
export const SCANS = new Thread()

/**
 * Calls `script` for a prepared file, in a thread that other files share. Storage failures arrive as
 * `service_unavailable`. `revive` recreates the errors that it knows.
 */
export class FileThread implements AsyncDisposable {
  readonly #thread: Thread
  readonly #script: URL
  readonly #file: StoreFile
  readonly #revive: (error: Error) => unknown
  #isClosed = false

  /** `script` exports a `call` of `servingFiles`. */
  constructor(thread: Thread, script: URL, file: StoreFile, revive = (error: Error): unknown => error) {
    this.#thread = thread
    this.#script = script
    this.#file = file
    this.#revive = revive
  }

  async call<T>(method: string, args: readonly unknown[], transfer?: readonly Transferable[]): Promise<T> {
    if (this.#isClosed) throw new ServiceUnavailable(this.#file.what)
    try {
      return await this.#thread.call<T>(this.#script, { file: this.#file.path, method, args } satisfies FileCall, transfer)
    } catch (error) {
      throw this.#file.toCallerError(error, this.#revive)
    }
  }

  /** Closes the file in the thread, after the pending calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return
    const closed = this.call('close', [])
    this.#isClosed = true
    await closed.catch(() => undefined)
  }
}
