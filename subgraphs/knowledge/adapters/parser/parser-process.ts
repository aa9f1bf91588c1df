import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type InnerFile, type ParsedDocument, ParseFailure } from '../../ports/document-parser.ts'
import type { RecognisedPage } from '../../ports/page-recogniser.ts'
import { childCommand } from './child-command.ts'
import { maxResultBytes, type ParserLimits } from './limits.ts'
import {
  decodeDocument,
  decodeInnerHead,
  decodePage,
  encodeRequest,
  PageCounts,
  type ParseRequest,
  type RecogniseRequest,
  type UnpackRequest,
} from './wire.ts'

/** Interval of the memory check. A child that allocates 1 GB per second exceeds the limit by 100 MB. */
const WATCH_INTERVAL_MS = 100

/**
 * Characters at the end of the child's standard error that an error quotes. They may quote the parser's code, but
 * hardly the document.
 */
const MAX_STDERR_CHARS = 2_000

/** V8 ends a process whose heap is full with SIGABRT, or with code 134 if a shell started the process. */
const HEAP_FULL = new Set<unknown>(['SIGABRT', 'SIGTRAP', 'SIGILL', 134])

/** Maximum characters of one recognized page. A page of newsprint has 30,000. */
const MAX_PAGE_CHARS = 4_000_000

/** Maximum processor time of a parsing child, in seconds. Parsing ends long before. */
const PARSE_CPU_SECONDS = 150

/** A child process that reads one document. It can be started early and then waits for its input. */
export class ParserProcess {
  readonly #child: ChildProcess
  readonly #closed: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  #stderr = ''
  #spawnError: unknown

  /** @param isolation the result of `networkIsolation()` */
  constructor(isolation: readonly string[], cpuSeconds = PARSE_CPU_SECONDS) {
    const { file, args, env } = childCommand(isolation, cpuSeconds)
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
   * Sends the document and waits for the result. `onPages` is called with the progress. The child has ended when the
   * promise settles.
   * @throws {ParseFailure} the child's verdict, or `timeout` or `limit_exceeded` if the child exceeds a limit.
   * @throws {unknown} the signal's reason, if the signal aborts.
   * @throws {Error} if the child could not run or crashed.
   */
  async parse(
    request: ParseRequest,
    file: Uint8Array | AsyncIterable<Uint8Array>,
    onPages: (done: number, total: number) => void,
    signal: AbortSignal,
  ): Promise<ParsedDocument> {
    const { limits } = request
    const watched = this.#watch(limits.timeoutMs, limits.maxRssBytes, signal)
    const pages = new PageCounts(limits.maxPages, onPages)
    const pieces: Buffer[] = []
    let size = 0
    this.#child.stdout?.on('data', (bytes: Buffer) => {
      let piece: Buffer
      try {
        piece = pages.consume(bytes)
      } catch (error) {
        return watched.end(error)
      }
      size += piece.length
      if (size > maxResultBytes(limits))
        watched.end(new ParseFailure('limit_exceeded', 'The document has too much text. Split it into smaller files.'))
      else pieces.push(piece)
    })
    await this.#send(request, file, watched.end)
    await watched.ended()
    return decodeDocument(Buffer.concat(pieces, size))
  }

  /**
   * Sends a file and yields the pages that the child recognizes, in the order of the request. It ends early before a
   * page that cannot be recognized. The child has ended when the generator has.
   * @throws {ParseFailure} `timeout` or `limit_exceeded` if the next page takes too much time or memory.
   * @throws {unknown} the signal's reason, if the signal aborts.
   * @throws {Error} if the child could not run or crashed.
   */
  async *recognise(
    request: RecogniseRequest,
    file: Uint8Array | AsyncIterable<Uint8Array>,
    { pageTimeoutMs, pageCpuMs, maxRssBytes }: Pick<ParserLimits, 'pageTimeoutMs' | 'pageCpuMs' | 'maxRssBytes'>,
    signal: AbortSignal,
  ): AsyncGenerator<RecognisedPage> {
    const watched = this.#watch(pageTimeoutMs, maxRssBytes, signal, pageCpuMs)
    const pages = request.pages.values()
    const sent = this.#send(request, file, watched.end)
    try {
      let rest = ''
      for await (const piece of this.#child.stdout!.setEncoding('utf8') as AsyncIterable<string>) {
        const lines = (rest + piece).split('\n')
        rest = lines.pop()!
        if (rest.length > MAX_PAGE_CHARS) watched.end(new ParseFailure('limit_exceeded', 'The page has too much text.'))
        for (const line of lines) {
          const page = decodePage(line, pages.next().value ?? 0)
          // The time limit of the next page starts when the caller has handled this one.
          watched.pause()
          yield page
          watched.resume()
        }
      }
      await sent
      await watched.ended()
    } finally {
      await this.kill()
    }
  }

  /**
   * Sends a file and yields its embedded files. The child has ended when the generator has.
   * @throws {ParseFailure} the child's verdict, or `timeout` or `limit_exceeded` if the next file exceeds a limit.
   * @throws {unknown} the signal's reason, if the signal aborts.
   * @throws {Error} if the child could not run or crashed.
   */
  async *unpack(request: UnpackRequest, file: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<InnerFile> {
    const { limits } = request
    const watched = this.#watch(limits.timeoutMs, limits.maxRssBytes, signal)
    const sent = this.#send(request, file, watched.end)
    try {
      for await (const inner of this.#innerFiles(limits, watched.end)) {
        watched.pause()
        yield inner
        watched.resume()
      }
      await sent
      await watched.ended()
    } finally {
      await this.kill()
    }
  }

  async *#innerFiles({ maxInnerBytes }: ParserLimits, end: (reason: unknown) => void): AsyncGenerator<InnerFile> {
    let pieces: Buffer[] = []
    let held = 0
    let head: ReturnType<typeof decodeInnerHead> | undefined
    const readBytes = (bytes: number): Buffer => {
      const all = Buffer.concat(pieces, held)
      pieces = [all.subarray(bytes)]
      held -= bytes
      return all.subarray(0, bytes)
    }
    for await (const piece of this.#child.stdout! as AsyncIterable<Buffer>) {
      pieces.push(piece)
      held += piece.length
      for (;;) {
        if (!head) {
          const line = Buffer.concat(pieces, held).indexOf(0x0a)
          if (line < 0) break
          head = decodeInnerHead(readBytes(line + 1).toString())
        }
        const size = head.sizeBytes ?? 0
        if (size > maxInnerBytes) return end(new Error('the parser process returned a file that is too large'))
        if (held < size) break
        yield { name: head.name, bytes: head.sizeBytes === null ? null : Buffer.from(readBytes(size)) }
        head = undefined
      }
    }
  }

  /** Sends the request and the file. `failed` is called if the file cannot be read. */
  async #send(
    request: ParseRequest | RecogniseRequest | UnpackRequest,
    file: Uint8Array | AsyncIterable<Uint8Array>,
    failed: (reason: unknown) => void,
  ): Promise<void> {
    const stdin = this.#child.stdin!
    stdin.write(encodeRequest(request))
    if (file instanceof Uint8Array) stdin.end(file)
    else await this.#sendPieces(file).catch(failed)
  }

  /**
   * Kills the child if it exceeds a limit or the signal aborts, until it has ended. `resume` restarts both time limits.
   */
  #watch(timeoutMs: number, maxRssBytes: number, signal: AbortSignal, maxCpuMs = Number.POSITIVE_INFINITY) {
    const child = this.#child
    let verdict: unknown
    let cpuMs = 0
    let cpuMsBefore = 0
    const end = (reason: unknown) => {
      verdict ??= reason
      child.kill('SIGKILL')
    }
    const onAbort = () => end(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const startTimer = () => setTimeout(() => end(outOfTime(timeoutMs)), timeoutMs)
    let timer = startTimer()
    const watch = setInterval(async () => {
      const rss = await readResidentBytes(child.pid)
      if (rss > maxRssBytes) end(outOfMemory())
      if (maxCpuMs === Number.POSITIVE_INFINITY) return
      cpuMs = Math.max(cpuMs, await readCpuMs(child.pid))
      if (cpuMs - cpuMsBefore > maxCpuMs) end(outOfTime(maxCpuMs))
    }, WATCH_INTERVAL_MS)
    const closed = this.#closed.finally(() => {
      clearTimeout(timer)
      clearInterval(watch)
      signal.removeEventListener('abort', onAbort)
    })
    return {
      end,
      pause: () => clearTimeout(timer),
      resume: () => {
        cpuMsBefore = cpuMs
        if (this.isAlive) timer = startTimer()
      },
      ended: async (): Promise<void> => {
        const { code, signal: killedBy } = await closed
        if (verdict) throw verdict
        if (HEAP_FULL.has(killedBy) || HEAP_FULL.has(code)) throw outOfMemory()
        if (killedBy === 'SIGXCPU') throw outOfTime(timeoutMs)
        if (code !== 0) throw new Error(`the parser process ended with ${killedBy ?? code}: ${this.#stderr}`, { cause: this.#spawnError })
      },
    }
  }

  /** Writes as fast as the child reads. A child that has ended reads no more; its exit code has the reason. */
  async #sendPieces(file: AsyncIterable<Uint8Array>): Promise<void> {
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

function outOfTime(timeoutMs: number): ParseFailure {
  return new ParseFailure('timeout', `Reading the document took longer than ${timeoutMs} ms. Split it into smaller files.`)
}

function outOfMemory(): ParseFailure {
  return new ParseFailure('limit_exceeded', 'Reading the document takes too much memory. Split it into smaller files.')
}

/** Linux reports times in hundredths of a second, whatever its own clock is (`USER_HZ`). */
const MS_PER_TICK = 10
/** The indices of `utime` and `stime` in /proc/[pid]/stat, counted after the name, which ends with the last bracket. */
const CPU_FIELDS = [11, 12] as const

/** Returns the processor time of a process. Returns 0 on systems without /proc, and after the process has ended. */
async function readCpuMs(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return CPU_FIELDS.reduce((sum, field) => sum + Number(fields[field] ?? 0) * MS_PER_TICK, 0)
}

/** Returns the resident memory in bytes. Returns 0 on systems without /proc, and after the process has ended. */
async function readResidentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
}
