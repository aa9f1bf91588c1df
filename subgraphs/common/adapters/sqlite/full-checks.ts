import { type ChildProcess, execFile } from 'node:child_process'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { KisError } from '../../errors.ts'
import type { FileVerification, StoreFiles } from '../../ports/store-files.ts'

const SCRIPT = fileURLToPath(new URL('./full-check-child.ts', import.meta.url))
/** A result that nobody fetches within this time is dropped, because a later caller wants a new check. */
const KEEP_MS = 60_000
/** Longest wait of one call: less than a read of a subgraph may take. */
const WAIT_MS = 2_000

interface Check {
  readonly child: ChildProcess
  readonly problems: Promise<readonly string[]>
}

/**
 * Runs SQLite's full check of files, each in its own process: a thread inside SQLite cannot be stopped, and a check of
 * minutes would keep the service from stopping. A check goes on when nobody waits for it any more, and its result is
 * kept for the next caller.
 */
export class FileChecks implements StoreFiles, AsyncDisposable {
  readonly #files: readonly string[]
  /** Running checks, and results that nobody has fetched. */
  readonly #checks = new Map<string, Check>()

  constructor(files: readonly string[]) {
    this.#files = files
  }

  async check(after: string | null): Promise<FileVerification> {
    const place = after === null ? 0 : this.#files.findIndex((file) => basename(file) === after)
    const file = this.#files[place]
    if (file === undefined) {
      if (after === null) return { files: [], next: null }
      throw new KisError('invalid_request', 'The cursor is not one that this operation gave.', { param: 'after' })
    }
    const name = basename(file)
    const problems = await this.#awaitProblems(file)
    if (!problems) return { files: [], next: name }
    const next = this.#files[place + 1]
    return { files: [{ name, problems }], next: next === undefined ? null : basename(next) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#checks.values()) child.kill('SIGKILL')
    await Promise.allSettled([...this.#checks.values()].map(({ problems }) => problems))
  }

  /** Undefined: the check is still running. */
  async #awaitProblems(file: string): Promise<readonly string[] | undefined> {
    const check = this.#checks.get(file) ?? this.#start(file)
    const waiting = new AbortController()
    const waited = sleep(WAIT_MS, undefined, { signal: waiting.signal }).catch(() => undefined)
    let isOver = true
    try {
      const problems = await Promise.race([check.problems, waited])
      isOver = problems !== undefined
      return problems
    } finally {
      waiting.abort()
      if (isOver) this.#checks.delete(file)
    }
  }

  #start(file: string): Check {
    const ended = Promise.withResolvers<readonly string[]>()
    const child = execFile(process.execPath, ['--no-warnings', SCRIPT, file], { env: {} }, (error, stdout) => {
      if (error) ended.reject(new Error(`the check of ${file} did not end`, { cause: error }))
      else ended.resolve(JSON.parse(stdout))
      const forget = () => this.#checks.get(file) === check && this.#checks.delete(file)
      setTimeout(forget, KEEP_MS).unref()
    })
    // The next caller gets the error.
    ended.promise.catch(() => undefined)
    const check = { child, problems: ended.promise }
    this.#checks.set(file, check)
    return check
  }
}
