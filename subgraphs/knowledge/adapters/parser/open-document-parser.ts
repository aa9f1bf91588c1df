import { locks } from 'node:worker_threads'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import type { Log } from '../../../common/process/log.ts'
import { sizeTexts } from '../../../common/sizes.ts'
import { ENCRYPTED_OFFICE, FORMAT_LIST, isBinaryFormat, isImage, isReadable } from '../../domain/media-types.ts'
import {
  type DocumentParser,
  type InnerFile,
  type ParsedDocument,
  ParseFailure,
  type ParseOptions,
  type StreamedFile,
} from '../../ports/document-parser.ts'
import { DEFAULT_LIMITS, type ParserLimits } from './limits.ts'
import { networkIsolation } from './network-isolation.ts'
import { ParserProcess } from './parser-process.ts'
import { sniffMediaType } from './sniff.ts'
import type { ParseRequest } from './wire.ts'

/**
 * The number of children that work at once. Two may use 1.4 GB together, and ingestion must leave memory for requests.
 */
const MAX_CHILDREN = 2

/** The lock of this process for reading a large file. */
const LARGE_FILES = 'reading a large file'
/** How often a reader may hold a large file: as it came in, and once more in the form that its library wants. */
const LARGE_FILE_COPIES = 2
/**
 * The largest file of a format that is all text. A document has at most 20 MiB of text, which markup, UTF-16 and
 * pictures in base64 make larger. Other formats may have any size that the plan allows: most of it is pictures.
 */
const MAX_TEXT_FILE_BYTES = 64 * 1024 * 1024

/** The number of documents that wait for a child. Each holds its bytes, so the worst case is about 800 MiB. */
const MAX_WAITING = 32

interface DocumentParserDeps {
  readonly log: Log
  /** The limits that differ from `DEFAULT_LIMITS`. */
  readonly limits?: Partial<ParserLimits>
}

/**
 * Opens a parser that reads documents in child processes. It keeps a spare child ready, because starting one takes
 * longer than reading a short text.
 */
export async function openDocumentParser(deps: DocumentParserDeps): Promise<DocumentParser> {
  const isolation = await networkIsolation()
  const missing = [
    ...(isolation.length === 0 ? ['a network namespace (unshare)'] : []),
    ...(process.platform === 'linux' ? [] : ['a watch over resident memory (/proc)']),
    ...(process.platform === 'win32' ? ['a limit of processor time (ulimit)'] : []),
  ]
  if (missing.length > 0) deps.log.warn({ missing }, 'processes that read documents run without these defences; the others are in place')
  return new ChildDocumentParser(deps, isolation)
}

class ChildDocumentParser implements DocumentParser {
  readonly #log: Log
  readonly #isolation: readonly string[]
  readonly #limits: ParserLimits
  readonly #working = new Set<Promise<unknown>>()
  readonly #waiting: (() => void)[] = []
  readonly #closing = new AbortController()
  #freeSlots = MAX_CHILDREN
  /** One child unpacks at a time, beside them: what it gives has to be stored, which takes longer. */
  readonly #unpacking = new FairSemaphore(1, MAX_WAITING)
  #spare: ParserProcess

  constructor({ log, limits }: DocumentParserDeps, isolation: readonly string[]) {
    this.#log = log
    this.#isolation = isolation
    this.#spare = new ParserProcess(isolation)
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
  }

  sniff(bytes: Uint8Array, fileName: string, cutBytes?: number): string {
    return sniffMediaType(bytes, fileName, cutBytes)
  }

  async parse(
    file: Uint8Array | StreamedFile,
    fileName: string,
    callerSignal: AbortSignal,
    { defersOcr = false, onPages = () => undefined }: ParseOptions = {},
  ): Promise<ParsedDocument> {
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    signal.throwIfAborted()
    if (file instanceof Uint8Array) {
      const mediaType = this.sniff(file, fileName)
      refuseUnreadable(file.length, mediaType)
      return this.#read({ mediaType, limits: this.#limits, defersOcr, sizeBytes: file.length }, file, onPages, signal)
    }
    const { sizeBytes, sample } = file
    const mediaType = this.sniff(sample.bytes, fileName, sample.cutBytes)
    refuseUnreadable(sizeBytes, mediaType)
    refuseTooLarge(sizeBytes, mediaType)
    // Its child holds the file beside what reading takes. One at a time keeps the memory of all children bounded.
    const limits = { ...this.#limits, maxRssBytes: this.#limits.maxRssBytes + LARGE_FILE_COPIES * sizeBytes }
    const request = { mediaType, limits, defersOcr, sizeBytes }
    return locks.request(LARGE_FILES, { signal }, () => this.#read(request, file.stream(), onPages, signal))
  }

  async *unpack(file: Uint8Array | StreamedFile, mediaType: string, callerSignal: AbortSignal): AsyncGenerator<InnerFile> {
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    const [bytes, sizeBytes] = file instanceof Uint8Array ? [file, file.length] : [file.stream(), file.sizeBytes]
    const limits = { ...this.#limits, maxRssBytes: this.#limits.maxRssBytes + LARGE_FILE_COPIES * sizeBytes }
    const release = await this.#unpacking.acquire('', signal)
    try {
      yield* this.#takeSpare().unpack({ unpack: mediaType, limits, sizeBytes }, bytes, signal)
    } finally {
      release()
    }
  }

  async #read(
    request: ParseRequest,
    file: Uint8Array | AsyncIterable<Uint8Array>,
    onPages: NonNullable<ParseOptions['onPages']>,
    signal: AbortSignal,
  ): Promise<ParsedDocument> {
    await this.#acquire(signal)
    let work: Promise<ParsedDocument> | undefined
    try {
      work = this.#takeSpare().parse(request, file, onPages, signal)
      this.#working.add(work)
      return await work
    } catch (error) {
      const isExpected = error instanceof ParseFailure || signal.aborted
      if (!isExpected) this.#log.error({ err: error, mediaType: request.mediaType, sizeBytes: request.sizeBytes }, 'parser process failed')
      throw error
    } finally {
      if (work) this.#working.delete(work)
      this.#release()
    }
  }

  /**
   * Takes one of `MAX_CHILDREN` places, in the order of the calls.
   * @throws {ServiceUnavailable} if `MAX_WAITING` documents wait already.
   * @throws {unknown} the signal's reason, if the signal aborts.
   */
  async #acquire(signal: AbortSignal): Promise<void> {
    if (this.#freeSlots > 0) {
      this.#freeSlots -= 1
      return
    }
    if (this.#waiting.length >= MAX_WAITING) throw new ServiceUnavailable('The document parser')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const go = () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    const onAbort = () => {
      this.#waiting.splice(this.#waiting.indexOf(go), 1)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.push(go)
    await promise
  }

  /** Gives the place to the document that has waited longest. */
  #release(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#freeSlots += 1
  }

  /** Takes the spare child, or a new one if the spare has died, and starts a new spare. */
  #takeSpare(): ParserProcess {
    const child = this.#spare.isAlive ? this.#spare : new ParserProcess(this.#isolation)
    this.#spare = new ParserProcess(this.#isolation)
    return child
  }

  /** Kills all children. Pending calls of `parse` fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ServiceUnavailable('The document parser'))
    await Promise.allSettled([...this.#working, this.#spare.kill()])
  }
}

/**
 * Refuses documents that need no child to be refused.
 * @throws {ParseFailure} `empty` if the file has no bytes.
 * @throws {ParseFailure} `password_required` if it is an encrypted Office document.
 * @throws {ParseFailure} `unsupported_type` if the service cannot read the format.
 */
function refuseUnreadable(sizeBytes: number, mediaType: string): void {
  if (sizeBytes === 0) throw new ParseFailure('empty', 'The file is empty.')
  if (mediaType === ENCRYPTED_OFFICE)
    throw new ParseFailure('password_required', 'The document needs a password to open. Upload a copy without one.')
  if (!isReadable(mediaType) && !isImage(mediaType))
    throw new ParseFailure('unsupported_type', `The service cannot read this file. It reads: ${FORMAT_LIST}.`)
}

/** @throws {ParseFailure} `limit_exceeded` if it is a large file of a format that is all text. */
function refuseTooLarge(sizeBytes: number, mediaType: string): void {
  if (isBinaryFormat(mediaType) || sizeBytes <= MAX_TEXT_FILE_BYTES) return
  const [has, most] = sizeTexts(sizeBytes, MAX_TEXT_FILE_BYTES)
  throw new ParseFailure('limit_exceeded', `The file has ${has}; a file of its format may have ${most}. Split it into smaller files.`)
}
