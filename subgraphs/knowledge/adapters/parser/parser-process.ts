import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type ParsedDocument, ParseFailure } from '../../ports/document-parser.ts'
import { childCommand } from './child-command.ts'
import { maxResultBytes, type ParserLimits } from './limits.ts'
import { decodeAnswer, encodeRequest, type ParseRequest } from './wire.ts'

/** The interval of the memory check. A child that allocates 1 GB per second exceeds the limit by 100 MB. */
const WATCH_INTERVAL_MS = 100

/**
 * The number of characters at the end of the child's standard error that an error quotes. They may quote the parser's
 * code, but hardly the document.
 */
const MAX_STDERR_CHARS = 2_000

/** V8 ends a process whose heap is full with SIGABRT, or with code 134 if a shell started the process. */
const HEAP_FULL = new Set<unknown>(['SIGABRT', 'SIGTRAP', 'SIGILL', 134])

/** A child process that reads one document. It can be started early; it then waits for its input. */
export class ParserProcess {
  readonly #child: ChildProcess
  readonly #closed: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  #stderr = ''
  #spawnError: unknown

  /** @param isolation the result of `networkIsolation()` */
  constructor(isolation: readonly string[]) {
    const { file, args, env } = childCommand(isolation)
    this.#child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true })
    this.#closed = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => resolve({ code, signal }))
      this.#child.on('error', (error) => {
        this.#spawnError = error
        // A child that failed to start emits no `close`.
        if (this.#child.pid === undefined) resolve({ code: null, signal: null })
      })
    })
    // A child may end before it has read everything. Its exit code reports that.
    this.#child.stdin?.on('error', () => undefined)
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-MAX_STDERR_CHARS)
    })
  }

  get isAlive(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /**
   * Hands over the document and waits for the answer. The child has ended when the promise settles.
   * @throws {ParseFailure} the child's verdict, or `timeout` or `limit_exceeded` if the child exceeds a limit.
   * @throws {Error} if the child fails.
   * @throws {unknown} the signal's reason, if the signal aborts.
   */
  async parse(request: ParseRequest, file: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<ParsedDocument> {
    const { limits } = request
    const child = this.#child
    let verdict: unknown
    const end = (reason: unknown) => {
      verdict ??= reason
      child.kill('SIGKILL')
    }
    const onAbort = () => end(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const timer = setTimeout(() => end(outOfTime(limits)), limits.timeoutMs)
    const watch = setInterval(async () => {
      const rss = await readResidentBytes(child.pid)
      if (rss > limits.maxRssBytes) end(outOfMemory())
    }, WATCH_INTERVAL_MS)
    const pieces: Buffer[] = []
    let size = 0
    child.stdout?.on('data', (piece: Buffer) => {
      size += piece.length
      if (size > maxResultBytes(limits))
        end(new ParseFailure('limit_exceeded', 'The document has too much text. Split it into smaller files.'))
      else pieces.push(piece)
    })
    try {
      if (signal.aborted) onAbort()
      child.stdin!.write(encodeRequest(request))
      if (file instanceof Uint8Array) child.stdin!.end(file)
      else await this.#send(file).catch(end)
      const { code, signal: killedBy } = await this.#closed
      if (verdict) throw verdict
      if (HEAP_FULL.has(killedBy) || HEAP_FULL.has(code)) throw outOfMemory()
      if (killedBy === 'SIGXCPU') throw outOfTime(limits)
      if (code !== 0) throw new Error(`the parser process ended with ${killedBy ?? code}: ${this.#stderr}`, { cause: this.#spawnError })
      return decodeAnswer(Buffer.concat(pieces, size))
    } finally {
      clearTimeout(timer)
      clearInterval(watch)
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Writes as fast as the child reads. A child that has ended reads no more; its exit code says why. */
  async #send(file: AsyncIterable<Uint8Array>): Promise<void> {
    const { stdin } = this.#child
    for await (const bytes of file) {
      if (!this.isAlive) return
      if (!stdin!.write(bytes)) await Promise.race([once(stdin!, 'drain').catch(() => undefined), this.#closed])
    }
    stdin!.end()
  }

  /** Kills the child and waits until it has ended. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}

function outOfTime({ timeoutMs }: ParserLimits): ParseFailure {
  return new ParseFailure('timeout', `Reading the document took longer than ${timeoutMs} ms. Split it into smaller files.`)
}

function outOfMemory(): ParseFailure {
  return new ParseFailure('limit_exceeded', 'Reading the document takes too much memory. Split it into smaller files.')
}

/** Returns the resident memory in bytes. Returns 0 on systems without /proc, and after the process has ended. */
async function readResidentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
}
