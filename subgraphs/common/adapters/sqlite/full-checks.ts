import { execFile } from 'node:child_process'
import { basename } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { FileVerification, StoreFiles } from '../../documents/verify-files.ts'
import { KisError } from '../../errors.ts'

/** A result that no caller fetches within this time is dropped, because a later caller wants a new check. */
const RESULT_TTL_MS = 60_000
/** Longest wait of one call, below the time limit of a read from a subgraph. */
const WAIT_MS = 2_000
const MAX_PROBLEMS = 20
const MAX_CHARACTERS = 500
/** A reader may wait for the writer's checkpoint. */
const BUSY_TIMEOUT_MS = 10_000

/**
 * Runs SQLite's full check of files, each in its own process: a thread inside SQLite cannot be stopped, and a check of
 * minutes would delay the stop of the service. A check continues when no caller waits for it any more, and its result
 * is stored for the next caller.
 */
export class FileChecks implements StoreFiles, AsyncDisposable {
  readonly #files: readonly string[]
  /** Running checks, and results that no caller has fetched. */
  readonly #checks = new Map<string, Promise<readonly string[]>>()
  readonly #closing = new AbortController()

  constructor(files: readonly string[]) {
    this.#files = files
  }

  async check(after: string | null): Promise<FileVerification> {
    const index = after === null ? 0 : this.#files.findIndex((file) => basename(file) === after)
    const file = this.#files[index]
    if (file === undefined) {
      if (after === null) return { files: [], next: null }
      throw new KisError('invalid_request', 'The cursor is not from this operation.', { param: 'after' })
    }
    const name = basename(file)
    const problems = await Promise.race([this.#checks.get(file) ?? this.#start(file), sleep(WAIT_MS, undefined, { ref: false })])
    if (!problems) return { files: [], next: name }
    this.#checks.delete(file)
    const next = this.#files[index + 1]
    return { files: [{ name, problems }], next: next === undefined ? null : basename(next) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#checks.values())
  }

  async #start(file: string): Promise<readonly string[]> {
    const child = [process.execPath, ['--no-warnings', fileURLToPath(import.meta.url), file]] as const
    const options = { env: {}, signal: this.#closing.signal, killSignal: 'SIGKILL' } as const
    const check = promisify(execFile)(...child, options).then(({ stdout }) => JSON.parse(stdout) as readonly string[])
    this.#checks.set(file, check)
    const evict = () => this.#checks.get(file) === check && this.#checks.delete(file)
    check.then(() => setTimeout(evict, RESULT_TTL_MS).unref(), evict)
    return check
  }
}

function findProblems(file: string): readonly string[] {
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
    const rows = database.prepare(`PRAGMA integrity_check(${MAX_PROBLEMS})`).all() as { integrity_check: string }[]
    const lines = rows.flatMap((row) => row.integrity_check.split('\n'))
    return lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
  } catch (error) {
    return [(error as Error).message]
  }
}

// This code runs in the process of a check.
if (import.meta.main)
  console.log(
    JSON.stringify(
      findProblems(process.argv[2]!)
        .map((problem) => problem.slice(0, MAX_CHARACTERS))
        .slice(0, MAX_PROBLEMS),
    ),
  )
