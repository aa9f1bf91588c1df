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

/** What the runs of agents, or those of workflows, add to `Runs`. */
export interface RunKind<Run extends RunBase, Event extends RunEventBase> {
  readonly noun: 'agent' | 'workflow'
  readonly table: 'runs' | 'workflowRuns'
  readonly records: DocumentCollection<Run>
  /** Runs of one process at once. One organization has at most half of them. */
  readonly maxRuns: number
  /**
   * Whether a caller waits for the run at a connection. Such a run is refused when it has no place, and fails by what
   * may pass; once its first process is gone it waits like any other.
   */
  readonly isAwaited: boolean
  /** Whether the run's idempotency key may start another one. */
  freesKey(run: Run): boolean
  workOn(run: Run, log: RunLog<Event>): RunWork<Event>
  /** Deletes what is kept only while a run is under way. Repeatable. */
  forgetGiven(runId: string): Promise<void>
  /** Looks after what the kind keeps beside its runs, every 15 s. */
  sweep(): Promise<void>
}

/** The work on one run in one process. */
export interface RunWork<Event extends RunEventBase> {
  /**
   * Goes on with the run from where it stands, until its end.
   * @throws the signal's reason, when that has aborted; what keeps the run from going on here and now, so that it is
   * tried again.
   */
  work(at: RunUnderWay<Event>): Promise<RunEnd>
  /**
   * The fields that the run gets beside status, error, cost and `endedAt`, and the event that tells of its end. May be
   * asked without `work`.
   */
  atEnd(end: EndFields, output: unknown, charges: ReadonlyMap<string, bigint>): Promise<AtEnd>
}

export interface EndFields {
  readonly status: RunEnd['status']
  readonly error: RunError | null
  /** Nano-USD, as a decimal. */
  readonly cost: string
  readonly endedAt: Date
}

export interface AtEnd {
  readonly fields: Update['$set'] & object
  readonly event: EventData
}

/** What a run works with in the process that has it. */
export interface RunUnderWay<Event extends RunEventBase> {
  readonly context: CallContext & { readonly runHoldId: string }
  /** The paid calls of the run, each made once whoever runs it. */
  readonly steps: RunSteps
  readonly writer: RunEventWriter<Event>
  /** Writes fields of the run's record. @throws {LeftToOthers} another process has the run. */
  write(fields: Update['$set'] & object): Promise<void>
  /** Fields for the record that say that the run got further: its next start is its first. */
  readonly gotFurther: Update['$set'] & object
}
