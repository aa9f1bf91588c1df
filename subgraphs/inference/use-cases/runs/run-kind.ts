import type { EventData } from '../../../common/events/event-log.ts'
import type { DocumentCollection, Update } from '../../../common/ports/document-store.ts'
import type { RunError } from '../../domain/agents/run.ts'
import type { CallContext } from '../deps.ts'
import type { RunBase } from '../tables.ts'
import type { RunEventBase, RunEventWriter, RunLog } from './run-log.ts'
import type { RunSteps } from './run-steps.ts'

/** How a run ends. */
export type RunEnd =
  | { readonly status: 'completed'; readonly output: unknown }
  | { readonly status: 'failed'; readonly error: RunError }
  | { readonly status: 'cancelled' }

/** The parts of `Runs` that differ between agents and workflows. */
export interface RunKind<Run extends RunBase, Event extends RunEventBase> {
  readonly noun: 'agent' | 'workflow'
  readonly records: DocumentCollection<Run>
  /** Most runs of one process at once. One organization has at most half of them. */
  readonly maxRuns: number
  /**
   * Reports whether a caller waits for the run on a connection. Such a run is refused when no slot is free, and it
   * fails on a temporary error. Once its first process is gone, it waits like any other run.
   */
  readonly isAwaited: boolean
  /** Reports whether the run's idempotency key may start another run. */
  freesKey(run: Run): boolean
  workOn(run: Run, log: RunLog<Event>): RunWork<Event>
  /** Deletes the data that is stored only until the run has ended. Can be repeated. */
  deleteInput(runId: string): Promise<void>
  /** Cleans up the kind's own data besides the runs. Called every 15 s. */
  sweep(log: RunLog<Event>): Promise<void>
}

/** The work on one run in one process. */
export interface RunWork<Event extends RunEventBase> {
  /**
   * Continues the run from its current state until its end.
   * @throws the reason of the signal, when it is aborted.
   * @throws {LeftToOthers} another process has to continue the run.
   * @throws any error that stops the run in this process for now; the run is retried.
   */
  work(at: ActiveRun<Event>): Promise<RunEnd>
  /**
   * Returns the run's fields besides status, error, cost and `endedAt`, and the event about its end. May be called
   * without `work`.
   */
  atEnd(end: EndFields, output: unknown, charges: ReadonlyMap<string, bigint>): Promise<AtEnd>
}

/** How a run ended, as its record stores it. */
export interface EndFields {
  readonly status: RunEnd['status']
  readonly error: RunError | null
  /** Nano-USD, as a decimal. */
  readonly cost: string
  readonly endedAt: Date
}

/** What the end of a run writes: fields of its record, and the event for webhooks. */
export interface AtEnd {
  readonly fields: Update['$set'] & object
  readonly event: EventData
}

/** What a run uses in the process that has leased it. */
export interface ActiveRun<Event extends RunEventBase> {
  readonly context: CallContext & { readonly runHoldId: string }
  /** The paid calls of the run. Each is executed once, whichever process runs it. */
  readonly steps: RunSteps
  readonly writer: RunEventWriter<Event>
  /**
   * Writes fields of the run's record.
   * @throws {LeftToOthers} another process has the run.
   */
  write(fields: Update['$set'] & object): Promise<void>
  /** Fields for the record that show progress: they reset the number of starts. */
  readonly gotFurther: Update['$set'] & object
}
