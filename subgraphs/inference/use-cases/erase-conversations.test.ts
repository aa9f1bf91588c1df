import { afterEach, describe, expect, it } from 'vitest'
import type { ErasureTask } from '../../common/erasure/erasing.ts'
import type { Principal } from '../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../test-support/parts.ts'
import { calls, says } from '../test-support/scripted-engine.ts'
import { AgentRuns } from './agents/agent-runs.ts'
import { createAgent } from './agents/agents.ts'
import { eraseConversations, findConversations } from './erase-conversations.ts'
import { WorkflowRuns } from './workflows/workflow-runs.ts'

const ann: Principal = { ...somebody, scopes: ['agents'], apiKeyId: 'key_ann' }
const bob: Principal = { ...ann, apiKeyId: 'key_bob' }
/** The id that the fake knowledge uses. */
const PORTS_DOCUMENT = 'doc_ports_0'

const open: (AgentRuns | WorkflowRuns)[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

/** Ann has asked about ports in a thread; Bob has asked about lamps in another. */
async function world() {
  const { deps, ofRuns, far, knowledge } = parts({ balance: 10_000_000_000n })
  knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
  knowledge.add('lamps', ['The lighthouse has a lamp of brass.'])
  const runs = new AgentRuns(deps, ofRuns)
  const workflowRuns = new WorkflowRuns(deps, ofRuns)
  open.push(runs, workflowRuns)
  const runSearch = async (caller: Principal, collection: 'ports' | 'lamps', query: string, threadId?: string) => {
    const context = { ...createRequestContext(), caller }
    const code = `${caller.apiKeyId.slice(4)}-${collection}`
    const known = await deps.collections.agents.findOne({ organizationId: caller.organizationId, code })
    const agent = known ?? (await createAgent(deps, context, { code, name: code, model: 'chat', collectionIds: [collection] }))
    far.streams.push(calls([`search_${collection}`, { query }]), says('It is so [#1].'))
    const { run } = await runs.start(context, { agentId: agent._id, input: query, ...(threadId ? { threadId } : { keepThread: true }) })
    return runs.ended(context, run)
  }
  const anns = await runSearch(ann, 'ports', 'harbour')
  const bobs = await runSearch(bob, 'lamps', 'lamp')
  expect([anns.status, bobs.status]).toEqual(['completed', 'completed'])
  const task = (more: Partial<ErasureTask>): ErasureTask => ({
    ...{ id: 'ers_1', organizationId: ann.organizationId, documentId: null, documentIds: [], apiKeyIds: [], isFound: true, notes: null },
    ...{ kind: 'person', requestedAt: deps.clock.now(), ...more },
  })
  const left = async () => {
    const ids = (records: readonly { readonly _id: string }[]) => records.map(({ _id }) => _id)
    const events = await deps.collections.runEvents.find({}, { limit: 1_000 })
    return {
      runs: ids(await deps.collections.runs.find({}, { limit: 10 })),
      threads: ids(await deps.collections.threads.find({}, { limit: 10 })),
      events: [...new Set(events.map(({ runId }) => runId))],
    }
  }
  const erasing = { ...deps, runs, workflowRuns }
  const { signal } = new AbortController()
  const erase = async (one: ErasureTask) => (await eraseConversations(erasing, one, signal)).isEmpty
  return { deps, runSearch, anns, bobs, task, left, find: (one: ErasureTask) => findConversations(erasing, one), erase }
}

describe('Erasure of conversations', () => {
  it('of a person deletes their runs with events, their threads and stored responses, and nothing of others', async () => {
    const { anns, bobs, task, left, find, erase } = await world()
    const one = task({ apiKeyIds: ['key_ann'] })
    expect(await find(one)).toEqual({ found: { agent_runs: 1, workflow_runs: 0, threads: 1, kept_answers: 0 } })
    expect([await erase(one), await erase(one)]).toEqual([false, true])
    expect(await left()).toEqual({ runs: [bobs._id], threads: [bobs.threadId], events: [bobs._id] })
    expect(anns.threadId).not.toBe(bobs.threadId)
  })

  it('of a person finds a thread whose runs are gone, and preserves what began later', async () => {
    const { deps, runSearch, anns, task, left, erase } = await world()
    await deps.collections.runs.findOneAndDelete({ _id: anns._id })
    const one = task({ apiKeyIds: ['key_ann', 'key_bob'], requestedAt: new Date(deps.clock.now().getTime() - 1) })
    const later = task({ apiKeyIds: ['key_ann', 'key_bob'] })
    expect(await erase(later)).toBe(false)
    expect(await left()).toMatchObject({ runs: [], threads: [] })
    const again = await runSearch(ann, 'ports', 'harbour')
    expect(await erase(one)).toBe(true)
    expect(await left()).toMatchObject({ runs: [again._id], threads: [again.threadId] })
  })

  it('of a document deletes the runs that have read it, and their whole threads', async () => {
    const { bobs, task, left, find, erase } = await world()
    const one = task({ kind: 'document', documentId: PORTS_DOCUMENT, documentIds: [PORTS_DOCUMENT] })
    expect(await find(one)).toEqual({ found: { agent_runs: 1, workflow_runs: 0, threads: 1, kept_answers: 0 } })
    expect([await erase(one), await erase(one)]).toEqual([false, true])
    expect(await left()).toEqual({ runs: [bobs._id], threads: [bobs.threadId], events: [bobs._id] })
    expect(await find(task({ kind: 'document', documentId: 'doc_none', documentIds: ['doc_none'] }))).toMatchObject({
      found: { agent_runs: 0, threads: 0 },
    })
  })
})
