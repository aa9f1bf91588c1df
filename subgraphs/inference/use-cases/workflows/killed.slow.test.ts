import { afterEach, describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { systemClock } from '../../../common/process/clock.ts'
import { FakeBilling } from '../../test-support/fake-billing.ts'
import { Life, StoreOfLife } from '../../test-support/life.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { completion, usage } from '../../test-support/scripted-engine.ts'
import { createAgent } from '../agents/agents.ts'
import { WorkflowRuns } from './workflow-runs.ts'
import { createWorkflow } from './workflows.ts'

const owner: Principal = { ...somebody, scopes: ['agents', 'knowledge:read'] }
const context = { ...createRequestContext(), caller: owner }
const says = (content: string) => [{ role: 'user', content }]

/** Longer than the lease of a run, and of a call. */
const LEASES_END_MS = 31_000
const NODES = [
  { id: 'ask', type: 'chat', model: 'chat', messages: says('Is it?') },
  { id: 'way', type: 'branch', cases: [{ name: 'yes', when: { left: '{{ nodes.ask.text }}', op: 'eq', right: 'Yes' } }] },
  { id: 'guide', type: 'agent', agent_id: 'agent/guide', input: 'Which harbour?', after: ['way.yes'] },
  {
    id: 'each',
    type: 'map',
    over: ['a', 'b'],
    at_once: 1,
    node: { type: 'chat', model: 'chat', messages: says('{{ item }}') },
    after: ['guide'],
  },
  { id: 'heard', type: 'transcribe', model: 'speech', file_id: 'file_1', after: ['each'] },
  { id: 'end', type: 'template', template: '{{ nodes.each.items[*].text | join(" ") }} {{ nodes.heard.text }}' },
]
/**
 * Charges for 20 input tokens and 5 output tokens, five times, two of them for the agent, which searches in between;
 * and for 2.5 s of audio at USD 0.006 per minute.
 */
const COSTS = [30_000n, 30_000n, 30_000n, 30_000n, 30_000n, 250_000n]

const open: WorkflowRuns[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

function born(store: MemoryDocumentStore, billing: FakeBilling, life: Life, isExclusive: boolean, aheadMs = 0) {
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) }
  const world = parts({ store: new StoreOfLife(store, life), billing: life.of(billing), isExclusive, clock })
  // A model's reply depends only on its request, whichever process calls.
  world.far.chat.complete = async (_call, { messages, tools }) => {
    const isSearching = tools !== undefined && (messages as readonly { role: string }[]).at(-1)!.role === 'user'
    const call = { id: 'call_1', type: 'function', function: { name: 'search_ports', arguments: '{"query": "harbour"}' } }
    const message = { role: 'assistant', content: isSearching ? null : 'Yes', ...(isSearching && { tool_calls: [call] }) }
    return completion({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage: usage(20, 5) })
  }
  world.knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
  world.knowledge.cost = 0n
  world.far.transcript = { text: 'heard' }
  world.knowledge.files.set('file_1', Buffer.from('wav 2500 x'))
  return { ...world, runs: new WorkflowRuns(world.deps, world.ofRuns) }
}

describe('Killed workflow run of models, an agent, a map and audio', () => {
  it.each([
    ['the next process on its data directory', true],
    ['another process after its leases expire', false],
  ])('after any write, ends with the same result in %s, and pays for each call once', { timeout: 120_000 }, async (_who, isExclusive) => {
    let length = Number.POSITIVE_INFINITY
    for (let last = 1; last <= length; last++) {
      const store = new MemoryDocumentStore()
      const billing = new FakeBilling(10_000_000_000n)
      billing.principal = owner
      const { deps, knowledge } = parts({ store })
      knowledge.add('ports', [])
      await createAgent(deps, context, { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['ports'] })
      const { _id: workflowId } = await createWorkflow(deps, context, {
        code: 'w',
        name: 'W',
        definition: { nodes: NODES, output: '{{ nodes.end.text }}' },
      })

      const life = new Life(last)
      const killed = born(store, billing, life, isExclusive)
      const started = killed.runs.start(context, { workflowId })
      // The process is dead, or the run has ended.
      const ended = started.then((run) => killed.runs.ended(context, run)).then(() => true)
      if (await Promise.race([ended, life.over])) length = last

      const next = born(store, billing, new Life(), isExclusive, isExclusive ? 0 : LEASES_END_MS)
      open.push(next.runs)
      const [run] = await next.deps.collections.workflowRuns.find({ organizationId: 'org_a', workflowId }, { limit: 10 })
      const charges = () => [...billing.holds.values()].filter(({ charged }) => charged > 0n).map(({ charged }) => charged)
      if (!run) {
        expect(charges(), `killed at ${last}`).toEqual([])
        continue
      }
      const { status, output, cost, nodes } = await next.runs.ended(context, run)
      expect({ status, output, cost, at: last }).toEqual({ status: 'completed', output: '"Yes Yes heard"', cost: '400000', at: last })
      expect(charges(), `killed at ${last}`).toEqual(COSTS)
      expect(Object.values(nodes).map((node) => node.cost)).toEqual(['30000', '0', '60000', '60000', '250000', '0'])
      expect({ held: billing.held, open: billing.openHolds, at: last }).toEqual({ held: 0n, open: 0, at: last })
      const reported = []
      for await (const { event } of next.runs.log.follow('org_a', run._id, null))
        if (event.type === 'node_ended') reported.push(event.nodeId)
      expect(reported.toSorted(), `killed at ${last}`).toEqual(['ask', 'each', 'end', 'guide', 'heard', 'way'])
      await next.runs[Symbol.asyncDispose]()
    }
    expect(length).toBeGreaterThan(50)
  })
})
