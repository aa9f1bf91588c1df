import type { RunEvent } from './runs.ts'

/** The work of a run between two calls of its model, and the model's text in the call. */
interface ProgressStep {
  readonly number: number
  readonly text: string
  readonly tools: readonly NonNullable<RunEvent['toolCall']>[]
  readonly searches: readonly NonNullable<RunEvent['search']>[]
}

/** A run as its events report it. */
export interface Progress {
  readonly steps: readonly ProgressStep[]
  /** The cursors of the events so far: after a reconnect some may come again. */
  readonly cursors: ReadonlySet<string>
  /** The cursor to resume after. */
  readonly last: string | null
  /** The thread that stores the answer. A run that failed or was stopped adds nothing to its thread. */
  readonly threadId: string | null
  readonly isDone: boolean
}

export const NO_PROGRESS: Progress = { steps: [], cursors: new Set(), last: null, threadId: null, isDone: false }

/** Returns the run after an event. A known event changes nothing. */
export function progressAfter(before: Progress, event: RunEvent): Progress {
  const { type, cursor, number, textDelta, toolCall, search, run } = event
  if (before.cursors.has(cursor)) return before
  const progress: Progress = {
    ...before,
    cursors: new Set(before.cursors).add(cursor),
    last: cursor,
    threadId: run?.status === 'COMPLETED' ? run.threadId : before.threadId,
    isDone: type === 'DONE',
  }
  const change = (next: (step: ProgressStep) => ProgressStep): Progress => {
    const at = number ?? 0
    const step = progress.steps.find((each) => each.number === at) ?? { number: at, text: '', tools: [], searches: [] }
    return { ...progress, steps: [...progress.steps.filter((each) => each.number !== at), next(step)] }
  }
  // The call is repeated: its earlier text is discarded.
  if (type === 'STEP_STARTED') return change((step) => ({ ...step, text: '', tools: [] }))
  if (type === 'TEXT_DELTA' && textDelta) return change((step) => ({ ...step, text: step.text + textDelta }))
  if (type === 'TOOL_CALL' && toolCall) {
    return change((step) => ({ ...step, tools: [...step.tools.filter(({ id }) => id !== toolCall.id), toolCall] }))
  }
  if (type === 'SEARCH' && search) return change((step) => ({ ...step, searches: [...step.searches, search] }))
  return progress
}

/** Returns the model's present text: that of its newest call. Before it searched, it may have written another. */
export function draftText({ steps }: Progress): string {
  return steps.at(-1)?.text ?? ''
}
