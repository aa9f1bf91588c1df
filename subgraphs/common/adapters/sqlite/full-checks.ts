import { type ChildProcess, execFile } from 'node:child_process'
import { basename } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { KisError } from '../../errors.ts'
import type { FileVerification, StoreFiles } from '../../ports/store-files.ts'

const SCRIPT = fileURLToPath(new URL('./full-check-child.ts', import.meta.url))
/** What nobody asks for within this is forgotten: a later question wants the file as it is then. */
const KEEP_MS = 60_000
/** Of one call: less than a read of a subgraph may take. */
const WAIT_MS = 2_000

interface Check {
  readonly child: ChildProcess
  readonly problems: Promise<readonly string[]>
}

/**
 * SQLite's full check of files, each in a process of its own: a thread that is inside SQLite cannot be ended, so that a check of minutes would keep
 * the service from stopping. A check that nobody waits for any more goes on to its end, and its outcome is kept for who asks next.
 */
export class FileChecks implements StoreFiles, AsyncDisposable {
  readonly #files: readonly string[]
  /** Those under way, and those that nobody has been told of yet. */
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
    const problems = await this.#problemsOf(file)
    if (!problems) return { files: [], next: name }
    const next = this.#files[place + 1]
    return { files: [{ name, problems }], next: next === undefined ? null : basename(next) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#checks.values()) child.kill('SIGKILL')
    await Promise.allSettled([...this.#checks.values()].map(({ problems }) => problems))
  }

  /** Undefined: the check is not over yet. */
  async #problemsOf(file: string): Promise<readonly string[] | undefined> {
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
    // Whoever asks next is told.
    ended.promise.catch(() => undefined)
    const check = { child, problems: ended.promise }
    this.#checks.set(file, check)
    return check
  }
}
