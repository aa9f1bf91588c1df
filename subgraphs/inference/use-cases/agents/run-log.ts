import { endableIterator } from '../../../common/endable-iterator.ts'
import { KisError, NotFound } from '../../../common/errors.ts'
import type { RunEvent } from '../../domain/agents/run.ts'
import type { RunEventRecord } from '../collections.ts'
import type { Deps } from '../deps.ts'

/** Events that a follower reads together. */
const PAGE_EVENTS = 100
/** How soon a follower hears of what another process has written. */
const POLL_MS = 300
const CURSOR = /^\d{1,9}$/

/** An event as followers get it. */
export interface FollowedEvent<Event = RunEvent> {
  readonly runId: string
  /** 1, 2, 3 … */
  readonly sequence: number
  readonly at: Date
  readonly event: Event
}

/** Events of runs of one kind: written by the process that runs them, followed by any. The last one is `done`. */
export class RunLog<Event extends { readonly type: string } = RunEvent> {
  readonly #runs: 'runs' | 'workflowRuns'
  readonly #deps: Pick<Deps, 'collections' | 'clock'>
  readonly #followers = new Map<string, Set<() => void>>()

  constructor(deps: Pick<Deps, 'collections' | 'clock'>, runs: 'runs' | 'workflowRuns') {
    this.#deps = deps
    this.#runs = runs
  }

  writerOf(organizationId: string, runId: string): RunEventWriter {
    return new RunEventWriter(this.#deps, organizationId, runId, () => this.#notify(runId))
  }

  /** Adds an event behind all others, whoever has written them; none comes after `done`, so that adding that is repeatable. */
  async append(organizationId: string, runId: string, event: Event): Promise<void> {
    const { collections, clock } = this.#deps
    for (;;) {
      const [last] = await collections.runEvents.find({ runId }, { sort: { sequence: -1 }, limit: 1 })
      if (last && fromJson<{ readonly type: string }>(last.event).type === 'done') return
      const record = recordOf(organizationId, runId, (last?.sequence ?? 0) + 1, clock.now(), event)
      if ((await collections.runEvents.insertMissing([record])) === 1) return this.#notify(runId)
    }
  }

  /** The events that have been written, in pages. */
  async *written(runId: string): AsyncGenerator<Event> {
    for (let position = 0; ; ) {
      const page = await this.#read(runId, position)
      for (const { event } of page) yield fromJson<Event>(event)
      if (page.length < PAGE_EVENTS) return
      position = page.at(-1)!.sequence
    }
  }

  /** The run's events after a cursor, up to its last one. @throws {KisError} `not_found`; `invalid_request`: this is no cursor. */
  follow(organizationId: string, runId: string, after: string | null): AsyncIterableIterator<FollowedEvent<Event>, undefined> {
    let unread: RunEventRecord[] = []
    let position: number | undefined
    let isOver = false
    let wake = () => {}
    const notify = () => wake()
    const followers = this.#followers.get(runId) ?? new Set()
    this.#followers.set(runId, followers.add(notify))
    return endableIterator<FollowedEvent<Event>>(
      async () => {
        if (position === undefined) {
          position = await this.#position(organizationId, runId, after)
          isOver = await this.#endedAt(runId, position)
        }
        if (isOver) return { done: true, value: undefined }
        while (unread.length === 0) {
          // Before the look, so that what comes meanwhile is not slept over.
          const woken = new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, POLL_MS)
            wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
          unread = [...(await this.#read(runId, position))]
          if (unread.length > 0) break
          await woken
          if (!followers.has(notify)) return { done: true, value: undefined }
        }
        const { sequence, at, event } = unread.shift()!
        position = sequence
        const value = { runId, sequence, at, event: fromJson<Event>(event) }
        isOver = value.event.type === 'done'
        return { done: false, value }
      },
      () => {
        followers.delete(notify)
        if (followers.size === 0 && this.#followers.get(runId) === followers) this.#followers.delete(runId)
        notify()
      },
    )
  }

  async #position(organizationId: string, runId: string, after: string | null): Promise<number> {
    if (!(await this.#deps.collections[this.#runs].findOne({ _id: runId, organizationId }))) throw new NotFound('run', runId, 'runId')
    if (after === null) return 0
    if (!CURSOR.test(after)) throw new KisError('invalid_request', 'This is no cursor of a run.', { param: 'after' })
    return Number(after)
  }

  /** Whether the event there is the last one. */
  async #endedAt(runId: string, position: number): Promise<boolean> {
    if (position === 0) return false
    const at = await this.#deps.collections.runEvents.findOne({ runId, sequence: position })
    return at !== null && fromJson<{ readonly type: string }>(at.event).type === 'done'
  }

  #read(runId: string, position: number): Promise<readonly RunEventRecord[]> {
    return this.#deps.collections.runEvents.find({ runId, sequence: { $gt: position } }, { sort: { sequence: 1 }, limit: PAGE_EVENTS })
  }

  #notify(runId: string): void {
    for (const notify of this.#followers.get(runId) ?? []) notify()
  }
}

/**
 * Writes one run's events in their order. What comes while a write is under way goes with the next one, and pieces of text are joined there: a fast
 * model costs no more writes than the store can do, and nobody waits for a batch to fill.
 */
export class RunEventWriter {
  readonly #deps: Pick<Deps, 'collections' | 'clock'>
  readonly #organizationId: string
  readonly #runId: string
  readonly #written: () => void
  #waiting: RunEvent[] = []
  #sequence = 0
  #writing: Promise<void> | undefined

  constructor(deps: Pick<Deps, 'collections' | 'clock'>, organizationId: string, runId: string, written: () => void) {
    this.#deps = deps
    this.#organizationId = organizationId
    this.#runId = runId
    this.#written = written
  }

  write(event: RunEvent): void {
    const last = this.#waiting.at(-1)
    if (event.type === 'text_delta' && last?.type === 'text_delta' && last.number === event.number)
      this.#waiting[this.#waiting.length - 1] = { ...last, text: last.text + event.text }
    else this.#waiting.push(event)
    this.#writing ??= this.#writeAll()
    this.#writing.catch(() => undefined)
  }

  /** Resolves when all is written. @throws {KisError} the store is away; the run cannot go on. */
  async flushed(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const events = this.#waiting
      this.#waiting = []
      const at = this.#deps.clock.now()
      const records = events.map((event) => recordOf(this.#organizationId, this.#runId, ++this.#sequence, at, event))
      await this.#deps.collections.runEvents.insertMissing(records)
      this.#written()
    }
    this.#writing = undefined
  }
}

function recordOf(organizationId: string, runId: string, sequence: number, at: Date, event: object): RunEventRecord {
  return { _id: `${runId}_${sequence}`, organizationId, runId, sequence, at, event: toJson(event) }
}

/** JSON has no big integers: costs are decimals, as in `fromJson`. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (key, field) => (key === 'cost' && typeof field === 'bigint' ? String(field) : field))
}

export function fromJson<T>(text: string): T {
  return JSON.parse(text, (key, field) => (key === 'cost' && typeof field === 'string' ? BigInt(field) : field)) as T
}
