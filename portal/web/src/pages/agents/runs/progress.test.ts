import { describe, expect, it } from 'vitest'
import { draftText, NO_PROGRESS, progressAfter } from './progress.ts'
import type { RunEvent } from './runs.ts'

const NOTHING = { number: null, textDelta: null, toolCall: null, search: null, run: null }
const events = [
  { type: 'RUN_STARTED', run: { id: 'run_1', status: 'RUNNING', threadId: 'thr_1' } },
  { type: 'STEP_STARTED', number: 1 },
  { type: 'TEXT_DELTA', number: 1, textDelta: 'Let me look. ' },
  { type: 'TOOL_CALL', number: 1, toolCall: { id: 'call_1', name: 'search_rules', arguments: '{}' } },
  { type: 'SEARCH', number: 1, search: { query: 'leave', collection: null, hits: [] } },
  { type: 'STEP_STARTED', number: 2 },
  { type: 'TEXT_DELTA', number: 2, textDelta: 'Thirty ' },
  { type: 'TEXT_DELTA', number: 2, textDelta: 'days.' },
  { type: 'DONE', run: { id: 'run_1', status: 'COMPLETED', threadId: 'thr_1' } },
].map((event, index): RunEvent => ({ ...NOTHING, cursor: String(index), ...(event as Partial<RunEvent> & Pick<RunEvent, 'type'>) }))

const progressOf = (list: readonly RunEvent[]) => list.reduce(progressAfter, NO_PROGRESS)

describe('Run progress', () => {
  it('has the steps, the thread and the end', () => {
    const progress = progressOf(events)
    expect(progress).toMatchObject({ threadId: 'thr_1', isDone: true, last: '8' })
    expect(progress.steps).toMatchObject([
      { number: 1, tools: [{ name: 'search_rules' }], searches: [{ query: 'leave' }] },
      { number: 2, text: 'Thirty days.' },
    ])
    expect(draftText(progress)).toBe('Thirty days.')
  })

  it('counts each event once after a reconnection', () => {
    expect(progressOf([...events.slice(0, 7), ...events.slice(2, 5), ...events.slice(5)])).toEqual(progressOf(events))
  })

  it('discards the text of a repeated call', () => {
    const again = { ...NOTHING, type: 'STEP_STARTED', number: 2, cursor: 'again' } as const
    expect(draftText(progressOf([...events.slice(0, 7), again]))).toBe('')
    expect(draftText(progressOf([...events.slice(0, 7), again, { ...events[7]!, textDelta: '30' }]))).toBe('30')
  })

  it('names no thread if the run was stopped: the thread may not exist', () => {
    const run = { id: 'run_1', status: 'CANCELLED', threadId: 'thr_1' } as const
    expect(progressOf([...events.slice(0, 7), { ...events[8]!, run }])).toMatchObject({ isDone: true, threadId: null })
  })
})
