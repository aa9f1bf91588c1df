import type { RunEvent } from './runs.ts'

/** What a run did between two calls of its model, and what the model said in the call. */
interface ProgressStep {
  readonly number: number
  readonly text: string
  readonly tools: readonly NonNullable<RunEvent['toolCall']>[]
  readonly searches: readonly NonNullable<RunEvent['search']>[]
}

/** A run as its events tell it. */
export interface Progress {
  readonly steps: readonly ProgressStep[]
  /** The cursors of the events so far: after a break some may come again. */
  readonly cursors: ReadonlySet<string>
  /** Where to go on after a break. */
  readonly last: string | null
  /** The thread that keeps the answer. A run that failed or was stopped adds nothing to its thread. */
  readonly threadId: string | null
  readonly isDone: boolean
}

export const NO_PROGRESS: Progress = { steps: [], cursors: new Set(), last: null, threadId: null, isDone: false }

/** The run after an event. An event that is known already changes nothing. */
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
  // The call is made again: what it had said counts no more.
  if (type === 'STEP_STARTED') return change((step) => ({ ...step, text: '', tools: [] }))
  if (type === 'TEXT_DELTA' && textDelta) return change((step) => ({ ...step, text: step.text + textDelta }))
  if (type === 'TOOL_CALL' && toolCall) {
    return change((step) => ({ ...step, tools: [...step.tools.filter(({ id }) => id !== toolCall.id), toolCall] }))
  }
  if (type === 'SEARCH' && search) return change((step) => ({ ...step, searches: [...step.searches, search] }))
  return progress
}

/** What the model says now: the text of its newest call. Before it searched, it may have said something else. */
export function draftText({ steps }: Progress): string {
  return steps.at(-1)?.text ?? ''
}
