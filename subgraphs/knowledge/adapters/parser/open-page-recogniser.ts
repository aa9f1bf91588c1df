import { ServiceUnavailable } from '../../../common/errors.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import type { Log } from '../../../common/process/log.ts'
import { ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { PageRecogniser, RecognisedPage } from '../../ports/page-recogniser.ts'
import { DEFAULT_LIMITS, type ParserLimits } from './limits.ts'
import { networkIsolation } from './network-isolation.ts'
import { ParserProcess } from './parser-process.ts'

/** The number of children that recognise at once. Each keeps one core busy, and the other is for everything else. */
const PLACES = 1
/** The copies of its file that a child holds: what it was handed, and what PDFium reads. */
const FILE_COPIES = 2
/** The number of calls of one organization that wait. The workers make fewer. */
const MAX_WAITING = 64

export interface PageRecogniserDeps {
  readonly log: Log
  /** The limits that differ from `DEFAULT_LIMITS`. */
  readonly limits?: Partial<ParserLimits>
}

/** Opens a recogniser that reads pages in child processes, as confined as those of the parser. */
export async function openPageRecogniser(deps: PageRecogniserDeps): Promise<PageRecogniser> {
  return new ChildPageRecogniser(deps, await networkIsolation())
}

type Input = Parameters<PageRecogniser['recognise']>[0]

class ChildPageRecogniser implements PageRecogniser {
  readonly #log: Log
  readonly #isolation: readonly string[]
  readonly #limits: ParserLimits
  readonly #places = new FairPlaces(PLACES, MAX_WAITING)
  readonly #closing = new AbortController()
  readonly #children = new Set<ParserProcess>()

  constructor({ log, limits }: PageRecogniserDeps, isolation: readonly string[]) {
    this.#log = log
    this.#isolation = isolation
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
  }

  async *recognise({ organizationId, file, mediaType, pages }: Input, callerSignal: AbortSignal): AsyncGenerator<RecognisedPage> {
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    const leave = await this.#places.take(organizationId, signal)
    const { pageTimeoutMs, meanPageTimeoutMs } = this.#limits
    const late = AbortSignal.timeout(pageTimeoutMs + pages.length * meanPageTimeoutMs)
    try {
      for (let next = 0; next < pages.length; next += 1) {
        for await (const page of this.#recogniseSome(file, { mediaType, pages: pages.slice(next) }, signal, late)) {
          next += 1
          yield page
        }
        // The child stopped at this page. Another child continues after it, unless time is up.
        if (next < pages.length) yield { page: pages[next]!, confidence: null, paragraphs: [] }
      }
    } finally {
      leave()
    }
  }

  /** Yields pages until one fails. */
  async *#recogniseSome(
    file: Uint8Array | StreamedFile,
    request: { readonly mediaType: string; readonly pages: readonly number[] },
    signal: AbortSignal,
    late: AbortSignal,
  ): AsyncGenerator<RecognisedPage> {
    if (late.aborted) return
    const cpuSeconds = Math.ceil((request.pages.length * this.#limits.pageTimeoutMs) / 1_000) + 60
    const child = new ParserProcess(this.#isolation, cpuSeconds)
    const [bytes, sizeBytes] = file instanceof Uint8Array ? [file, file.length] : [file.stream(), file.sizeBytes]
    this.#children.add(child)
    try {
      const limits = { ...this.#limits, maxRssBytes: this.#limits.maxRssBytes + FILE_COPIES * sizeBytes }
      yield* child.recognise({ ...request, sizeBytes }, bytes, limits, AbortSignal.any([signal, late]))
    } catch (error) {
      if (error instanceof ParseFailure || (late.aborted && !signal.aborted)) return
      if (!signal.aborted) this.#log.error({ err: error, mediaType: request.mediaType }, 'the process that recognises pages failed')
      throw error
    } finally {
      this.#children.delete(child)
    }
  }

  /** Kills all children. Pending calls fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ServiceUnavailable('The page recogniser'))
    await Promise.allSettled([...this.#children].map((child) => child.kill()))
  }
}
