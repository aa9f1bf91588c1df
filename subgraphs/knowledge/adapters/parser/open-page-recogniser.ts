import { ServiceUnavailable } from '../../../common/errors.ts'
import { FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import type { Log } from '../../../common/process/log.ts'
import { ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { PageRecogniser, RecognisedPage } from '../../ports/page-recogniser.ts'
import { DEFAULT_LIMITS, type ParserLimits } from './limits.ts'
import { networkIsolation } from './network-isolation.ts'
import { ParserProcess } from './parser-process.ts'

/** The number of children that recognise at once. Each keeps one core busy, and the other is for everything else. */
const MAX_AT_ONCE = 1
/** The copies of its file that a child holds: what it was handed, and what PDFium reads. */
const FILE_COPIES = 2
/** The number of calls of one organization that wait. The workers make fewer. */
const MAX_WAITING = 64

interface PageRecogniserDeps {
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
  readonly #permits = new FairSemaphore(MAX_AT_ONCE, MAX_WAITING)
  readonly #closing = new AbortController()
  readonly #children = new Set<ParserProcess>()

  constructor({ log, limits }: PageRecogniserDeps, isolation: readonly string[]) {
    this.#log = log
    this.#isolation = isolation
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
  }

  async *recognise({ organizationId, file, mediaType, pages }: Input, callerSignal: AbortSignal): AsyncGenerator<RecognisedPage> {
    const signal = AbortSignal.any([callerSignal, this.#closing.signal])
    for (let next = 0; next < pages.length; ) {
      const release = await this.#permits.acquire(organizationId, signal)
      try {
        for await (const page of this.#recogniseSome(file, { mediaType, pages: pages.slice(next) }, signal)) {
          yield page
          next += 1
          // A turn is one page. To start another child for the next one takes half a second.
          if (this.#permits.isWantedBeside(organizationId)) break
        }
      } finally {
        release()
      }
    }
  }

  /** Yields pages, at least one. The last one has failed, or is the last of all. */
  async *#recogniseSome(
    file: Uint8Array | StreamedFile,
    request: { readonly mediaType: string; readonly pages: readonly number[] },
    signal: AbortSignal,
  ): AsyncGenerator<RecognisedPage> {
    const cpuSeconds = Math.ceil((request.pages.length * this.#limits.pageCpuMs) / 1_000) + 60
    const child = new ParserProcess(this.#isolation, cpuSeconds)
    const [bytes, sizeBytes] = file instanceof Uint8Array ? [file, file.length] : [file.stream(), file.sizeBytes]
    this.#children.add(child)
    let done = 0
    let limit: Pick<RecognisedPage, 'isOutOfTime' | 'isOutOfMemory'> = {}
    try {
      const limits = { ...this.#limits, maxRssBytes: this.#limits.maxRssBytes + FILE_COPIES * sizeBytes }
      for await (const page of child.recognise({ ...request, sizeBytes }, bytes, limits, signal)) {
        done += 1
        yield page
      }
    } catch (error) {
      if (!(error instanceof ParseFailure)) {
        if (!signal.aborted) this.#log.error({ err: error, mediaType: request.mediaType }, 'the process that recognises pages failed')
        throw error
      }
      limit = error.code === 'timeout' ? { isOutOfTime: true } : { isOutOfMemory: true }
    } finally {
      this.#children.delete(child)
    }
    const failed = request.pages[done]
    if (failed !== undefined) yield { page: failed, confidence: null, paragraphs: [], ...limit }
  }

  /** Kills all children. Pending calls fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ServiceUnavailable('The page recogniser'))
    await Promise.allSettled([...this.#children].map((child) => child.kill()))
  }
}
