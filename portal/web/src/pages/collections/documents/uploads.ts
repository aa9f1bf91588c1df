import type { Failure } from '../../../data/failure.ts'
import { HEAD_BYTES, type Refusal, type Rules, refusalOf } from './formats.ts'

/** The most bytes of a request: the service takes 4 MiB. Smaller ones show progress, and lose less with a connection. */
export const PIECE_BYTES = 1024 * 1024
const PARALLEL = 3
const MAX_ATTEMPTS = 6
const FIRST_WAIT_MS = 1_000
const MAX_WAIT_MS = 15_000

/** How a file is sent. Each call that fails throws a `Failure`. */
export interface Transport {
  readonly create: (name: string, sizeBytes: number) => Promise<string>
  /** Gives the offset of the next byte. */
  readonly append: (id: string, offset: number, piece: Blob) => Promise<number>
  /** Where an upload goes on. Null: it is gone. */
  readonly offset: (id: string) => Promise<number | null>
  /** Gives the id of the file. */
  readonly complete: (id: string) => Promise<string>
  readonly cancel: (id: string) => Promise<void>
  readonly attach: (fileId: string) => Promise<{ readonly documentId: string; readonly isNew: boolean }>
}

/**
 * `checking`, `waiting`, `sending`, `attaching`, then `attached`, or `unchanged` if the collection has it already.
 * `refused`: never sent. `failed` may be tried again.
 */
type UploadState = 'checking' | 'refused' | 'waiting' | 'sending' | 'attaching' | 'attached' | 'unchanged' | 'failed' | 'cancelled'

export interface UploadItem {
  readonly key: number
  readonly name: string
  readonly sizeBytes: number
  readonly state: UploadState
  readonly sentBytes: number
  readonly refusal: Refusal | null
  readonly failure: Failure | null
  readonly documentId: string | null
}

interface Entry {
  item: UploadItem
  readonly file: File
  /** The upload of the service, so that a second try goes on where the first one ended. */
  uploadId: string | null
  fileId: string | null
}

const OVER: ReadonlySet<UploadState> = new Set(['refused', 'attached', 'unchanged', 'failed', 'cancelled'])
export const isOver = ({ state }: Pick<UploadItem, 'state'>): boolean => OVER.has(state)

const asFailure = (error: unknown): Failure =>
  typeof error === 'object' && error !== null && 'code' in error
    ? (error as Failure)
    : { code: 'internal', message: '', param: null, shouldRetry: false, retryAfterMs: null }

/** Sends many files, a few at a time, in pieces, and attaches each. A lost connection only delays them. */
export class UploadQueue {
  #entries: readonly Entry[] = []
  #items: readonly UploadItem[] = []
  #last = 0
  #running = 0
  readonly #watchers = new Set<() => void>()
  readonly #transport: Transport
  readonly #wait: (ms: number) => Promise<void>

  constructor(transport: Transport, wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))) {
    this.#transport = transport
    this.#wait = wait
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  /** The files in the order in which they came. The same array until something changes. */
  items = (): readonly UploadItem[] => this.#items

  /** Looks at each file, once the rules are known, and sends those that they allow. */
  async add(files: readonly File[], known: Rules | Promise<Rules>): Promise<void> {
    const added = files.map(
      (file): Entry => ({
        file,
        uploadId: null,
        fileId: null,
        item: {
          key: ++this.#last,
          name: file.name,
          sizeBytes: file.size,
          state: 'checking',
          sentBytes: 0,
          refusal: null,
          failure: null,
          documentId: null,
        },
      }),
    )
    this.#entries = [...this.#entries, ...added]
    this.#notify()
    const rules = await known
    // What the plan has left goes to the files in turn.
    let room = rules.roomBytes
    for (const entry of added) {
      const refusal = await entry.file
        .slice(0, HEAD_BYTES)
        .arrayBuffer()
        .then(
          (head) => refusalOf(entry.file.size, new Uint8Array(head), { ...rules, roomBytes: room }),
          // A folder, or a file that was moved since.
          (): Refusal => 'unreadable',
        )
      if (entry.item.state !== 'checking') continue
      if (!refusal && room !== null) room -= entry.file.size
      this.#change(entry, refusal ? { state: 'refused', refusal } : { state: 'waiting' })
      this.#next()
    }
  }

  retry(key: number): void {
    const entry = this.#find(key)
    if (entry?.item.state !== 'failed') return
    this.#change(entry, { state: 'waiting', failure: null })
    this.#next()
  }

  cancel(key: number): void {
    const entry = this.#find(key)
    if (!entry || isOver(entry.item)) return
    this.#change(entry, { state: 'cancelled' })
    if (entry.uploadId) void this.#transport.cancel(entry.uploadId).catch(() => {})
  }

  /** Forgets what is over. */
  clear(): void {
    this.#entries = this.#entries.filter(({ item }) => !isOver(item))
    this.#notify()
  }

  #find(key: number): Entry | undefined {
    return this.#entries.find(({ item }) => item.key === key)
  }

  #change(entry: Entry, change: Partial<UploadItem>): void {
    entry.item = { ...entry.item, ...change }
    this.#notify()
  }

  #notify(): void {
    this.#items = this.#entries.map(({ item }) => item)
    for (const watcher of this.#watchers) watcher()
  }

  #next(): void {
    while (this.#running < PARALLEL) {
      const entry = this.#entries.find(({ item }) => item.state === 'waiting')
      if (!entry) return
      this.#running++
      this.#change(entry, { state: 'sending' })
      void this.#send(entry).finally(() => {
        this.#running--
        this.#next()
      })
    }
  }

  async #send(entry: Entry): Promise<void> {
    const isGone = () => entry.item.state === 'cancelled'
    try {
      if (!entry.fileId) {
        await this.#sendBytes(entry, isGone)
        if (isGone()) return
        this.#change(entry, { state: 'attaching' })
        entry.fileId = await this.#persist(() => this.#transport.complete(entry.uploadId!))
      } else this.#change(entry, { state: 'attaching' })
      const { documentId, isNew } = await this.#persist(() => this.#transport.attach(entry.fileId!))
      if (!isGone()) this.#change(entry, { state: isNew ? 'attached' : 'unchanged', documentId })
    } catch (error) {
      if (isGone()) return
      const failure = asFailure(error)
      // The service keeps nothing of a file that it refused.
      if (!failure.shouldRetry && !entry.fileId) entry.uploadId = null
      this.#change(entry, { state: 'failed', failure })
    }
  }

  async #sendBytes(entry: Entry, isGone: () => boolean): Promise<void> {
    const { file } = entry
    let offset = entry.uploadId ? await this.#persist(() => this.#transport.offset(entry.uploadId!)) : null
    if (offset === null) {
      entry.uploadId = await this.#persist(() => this.#transport.create(file.name, file.size))
      offset = 0
    }
    while (offset < file.size && !isGone()) {
      this.#change(entry, { sentBytes: offset })
      const at: number = offset
      offset = await this.#persist(async (attempt) => {
        // The answer to the piece before may have been lost: the service knows what it has.
        const from: number | null = attempt === 0 ? at : await this.#transport.offset(entry.uploadId!)
        if (from === null) throw asFailure(null)
        return from > at ? from : this.#transport.append(entry.uploadId!, from, file.slice(from, from + PIECE_BYTES))
      })
    }
    if (!isGone()) this.#change(entry, { sentBytes: file.size })
  }

  /** Tries again, each time later, what may work then. */
  async #persist<Value>(call: (attempt: number) => Promise<Value>): Promise<Value> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await call(attempt)
      } catch (error) {
        const failure = asFailure(error)
        const mayWork = failure.shouldRetry || failure.code === 'unreachable' || failure.code === 'in_use'
        if (!mayWork || attempt + 1 >= MAX_ATTEMPTS) throw failure
        await this.#wait(failure.retryAfterMs ?? Math.min(FIRST_WAIT_MS * 2 ** attempt, MAX_WAIT_MS))
      }
    }
  }
}
