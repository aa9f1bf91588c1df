import { describe, expect, it } from 'vitest'
import type { Agents, HomeDocument, Knowledge, Spend } from './home.ts'
import { documentsNow, lastDays, newestRuns, stepsDone } from './overview.ts'

const document = (id: string, status: HomeDocument['status']) =>
  ({ id, name: id, status, stage: null, progress: null, error: null, collection: { id: 'col_1', name: 'Letters' } }) as HomeDocument
const list = (...documents: readonly HomeDocument[]) => ({ edges: documents.map((node) => ({ node })) })
const knowledge = {
  collections: { totalCount: 1, edges: [{ node: { id: 'col_1', name: 'Letters' } }] },
  organization: { id: 'org_1', documentCounts: { queued: 1, processing: 1, ready: 0, failed: 1 } },
  processing: list(document('a', 'PROCESSING')),
  queued: list(document('b', 'QUEUED')),
  failed: list(document('c', 'FAILED')),
} as Knowledge

const names = (documents: readonly HomeDocument[]) => documents.map(({ id }) => id)

describe('Current documents', () => {
  it('are those of the lists while nothing changes', () => {
    const { inWork, failed } = documentsNow(knowledge, new Map())
    expect([names(inWork), names(failed)]).toEqual([['a', 'b'], ['c']])
  })

  it('are added, changed, failed and removed by events', () => {
    const live = new Map([
      ['a', document('a', 'READY')],
      ['b', document('b', 'FAILED')],
      ['c', null],
      ['d', document('d', 'QUEUED')],
    ])
    const { inWork, failed } = documentsNow(knowledge, live)
    expect([names(inWork), names(failed)]).toEqual([['d'], ['b']])
  })
})

it('lists the newest runs of agents and workflows, including deleted ones', () => {
  const run = (id: string, startedAt: string) => ({ id, status: 'COMPLETED', startedAt, cost: '0.1' })
  const agents = {
    agentRuns: { edges: [{ node: { ...run('run_1', '2026-11-23T10:00:00Z'), agentId: 'agt_1', agent: null } }] },
    workflowRuns: {
      edges: [{ node: { ...run('wfr_1', '2026-11-23T11:00:00Z'), workflowId: 'wf_1', workflow: { id: 'wf_1', name: 'Greet' } } }],
    },
  } as unknown as Agents
  expect(newestRuns(agents).map(({ id, kind, ofId, name }) => [id, kind, ofId, name])).toEqual([
    ['wfr_1', 'workflow', 'wf_1', 'Greet'],
    ['run_1', 'agent', 'agt_1', null],
  ])
})

it('fills days without a call, in UTC', () => {
  const groups = [
    { day: '2026-11-21', totals: { calls: 2, amount: '0.5' } },
    { day: '2026-11-23', totals: { calls: 1, amount: '0.25' } },
  ]
  const days = lastDays({ usageSummary: { groups } } as unknown as Spend, new Date('2026-11-23T23:30:00Z'))
  expect(days.map(({ day, share }) => [day.slice(8), share])).toEqual([
    ...[
      ['17', 0],
      ['18', 0],
      ['19', 0],
      ['20', 0],
    ],
    ...[
      ['21', 1],
      ['22', 0],
      ['23', 0.5],
    ],
  ])
})

it('detects which first steps are done, of those that the reader may see', () => {
  expect([...stepsDone({ knowledge, agents: null, keys: ['key_own'], ownKey: 'key_own' })]).toEqual([
    ['collection', true],
    ['document', false],
    ['key', false],
  ])
})
