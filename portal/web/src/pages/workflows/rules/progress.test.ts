import { describe, expect, it } from 'vitest'
import type { Run, RunEvent } from '../runs.ts'
import { advance, apply, NO_PROGRESS, type Progress } from './progress.ts'

const AT = '2026-11-23T10:00:00.000Z'
const node = (nodeId: string, state: string) => ({
  id: nodeId,
  nodeId,
  state,
  output: null,
  cost: '0',
  startedAt: null,
  endedAt: null,
  error: null,
})
const RUN = {
  id: 'wfr_1',
  status: 'RUNNING',
  cost: null,
  endedAt: null,
  nodes: [node('a', 'PENDING'), node('b', 'PENDING')],
} as unknown as Run

function follow(...events: readonly Partial<Record<keyof RunEvent, unknown>>[]): Progress {
  const whole = { nodeId: null, index: null, state: null, cost: null, run: null, at: AT }
  return events.reduce<Progress>((now, event, i) => advance(now, { ...whole, cursor: String(i), ...event } as RunEvent), NO_PROGRESS)
}

describe('Workflow run progress', () => {
  it('takes the states of nodes from the events', () => {
    const progress = follow(
      { type: 'RUN_STARTED' },
      { type: 'NODE_STARTED', nodeId: 'a' },
      { type: 'ITEM_DONE', nodeId: 'a', index: 0 },
      { type: 'ITEM_DONE', nodeId: 'a', index: 0 },
      { type: 'NODE_ENDED', nodeId: 'a', state: 'DONE', cost: '0.001' },
      { type: 'NODE_STARTED', nodeId: 'b' },
    )
    expect(progress.cursor).toBe('5')
    expect(apply(RUN, progress).nodes).toMatchObject([
      { nodeId: 'a', state: 'DONE', cost: '0.001', itemsDone: 1, startedAt: AT, endedAt: AT },
      { nodeId: 'b', state: 'RUNNING', endedAt: null },
    ])
  })

  it('does not go back when events are repeated', () => {
    const progress = follow({ type: 'NODE_ENDED', nodeId: 'a', state: 'DONE', cost: '1' }, { type: 'NODE_STARTED', nodeId: 'a' })
    expect(apply(RUN, progress).nodes[0]).toMatchObject({ state: 'DONE' })
    const pausedRun = { ...RUN, nodes: [node('a', 'FAILED')] } as unknown as Run
    expect(apply(pausedRun, follow({ type: 'NODE_STARTED', nodeId: 'a' })).nodes[0]).toMatchObject({ state: 'FAILED' })
  })

  it('ends with the last event', () => {
    const progress = follow({ type: 'DONE', run: { status: 'COMPLETED', cost: '0.5', endedAt: AT } })
    expect(apply(RUN, progress)).toMatchObject({ status: 'COMPLETED', cost: '0.5', endedAt: AT })
  })
})
