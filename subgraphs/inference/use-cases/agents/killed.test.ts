import { afterEach, describe, expect, it } from 'vitest'
import { MemoryDocumentStore } from '../../../../test/support/memory-document-store.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { systemClock } from '../../../common/process/clock.ts'
import type { BillingContext } from '../../ports/billing.ts'
import type { ChunkQuery } from '../../ports/knowledge.ts'
import { FakeBilling } from '../../test-support/fake-billing.ts'
import { Life, StoreOfLife } from '../../test-support/life.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { calls, says } from '../../test-support/scripted-engine.ts'
import { AgentRuns } from './agent-runs.ts'
import { createAgent } from './agents.ts'

const owner: Principal = { ...somebody, scopes: ['agents'] }
const context = { ...createRequestContext(), caller: owner }

/** Longer than the lease of a run, and of a call. */
const LEASES_END_MS = 31_000
const REPLIES = [calls(['search_ports', { query: 'harbour' }]), says('In 1931 [#1].')]

const open: AgentRuns[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

function born(store: MemoryDocumentStore, billing: FakeBilling, life: Life, isExclusive: boolean, aheadMs = 0) {
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) }
  const world = parts({ store: new StoreOfLife(store, life), billing: life.of(billing), isExclusive, clock })
  // The model's reply depends only on its request, whichever process calls.
  const { stream } = world.far.chat
  world.far.chat.stream = async (call, request, signal) => {
    const hasToolResult = (request.messages as readonly { role: string }[]).some(({ role }) => role === 'tool')
    world.far.streams = [REPLIES[hasToolResult ? 1 : 0]!]
    return stream(call, request, signal)
  }
  world.knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
  world.knowledge.cost = 0n
  return { ...world, runs: new AgentRuns(world.deps, world.ofRuns) }
}

describe('Killed agent run', () => {
  it.each([
    ['the next process on its data directory', true],
    ['another process after its leases expire', false],
  ])('after any write, ends with the same reply in %s, and pays for each call once', { timeout: 120_000 }, async (_who, isExclusive) => {
    let length = Number.POSITIVE_INFINITY
    let whole: readonly bigint[] = []
    for (let last = 1; last <= length; last++) {
      const store = new MemoryDocumentStore()
      const billing = new FakeBilling(10_000_000_000n)
      billing.principal = owner
      const { deps, knowledge } = parts({ store })
      knowledge.add('ports', [])
      const { _id: agentId } = await createAgent(deps, context, { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['ports'] })

      const life = new Life(last)
      const killed = born(store, billing, life, isExclusive)
      const started = killed.runs.start(context, { agentId, input: 'When was the harbour built?', keepThread: true })
      // The process is dead, or the run has ended.
      const ended = started.then(({ run }) => killed.runs.ended(context, run)).then(() => true)
      const charges = () => [...billing.holds.values()].filter(({ charged }) => charged > 0n).map(({ charged }) => charged)
      if (await Promise.race([ended, life.over])) {
        length = last
        whole = charges()
      }

      const next = born(store, billing, new Life(), isExclusive, isExclusive ? 0 : LEASES_END_MS)
      open.push(next.runs)
      const [run] = await next.deps.collections.runs.find({ organizationId: 'org_a', agentId }, { limit: 10 })
      if (!run) {
        expect(charges(), `killed at ${last}`).toEqual([])
        continue
      }
      const { status, outcome, cost, steps, threadId } = await next.runs.ended(context, run)
      expect({ status, error: run.error, at: last }).toEqual({ status: 'completed', error: null, at: last })
      expect(JSON.parse(outcome!), `killed at ${last}`).toMatchObject({ text: 'In 1931 [#1].', citations: [{ mark: 1 }] })
      const charged = charges().reduce((sum, one) => sum + one, 0n)
      expect({ cost, lines: JSON.parse(steps).map(({ kind }: { kind: string }) => kind), at: last }).toEqual({
        cost: String(charged),
        lines: ['model', 'search', 'model'],
        at: last,
      })
      if (length === last) expect(charges()).toEqual(whole)
      expect(charges(), `killed at ${last}`).toHaveLength(2)
      expect({ held: billing.held, open: billing.openHolds, at: last }).toEqual({ held: 0n, open: 0, at: last })
      const reported: string[] = []
      let text = ''
      for await (const { event } of next.runs.log.follow('org_a', run._id, null)) {
        if (event.type === 'step_started') text = ''
        if (event.type === 'text_delta') text += event.text
        else reported.push(event.type)
      }
      expect(text, `killed at ${last}`).toBe('In 1931 [#1].')
      const once = reported.filter((type) => type !== 'step_started')
      expect(once, `killed at ${last}`).toEqual(['run_started', 'usage', 'tool_call', 'search', 'usage', 'usage', 'done'])
      const thread = await next.deps.collections.threads.findOne({ _id: threadId! })
      expect(JSON.parse(thread!.messages), `killed at ${last}`).toHaveLength(2)
      expect(await next.deps.collections.runInputs.find({ runId: run._id }, { sort: { piece: 1 }, limit: 1 })).toEqual([])
      await next.runs[Symbol.asyncDispose]()
    }
    expect(length).toBeGreaterThan(25)
  })
})

it('a run started with an access token has the scopes of the token, even in the process that resumes it', async () => {
  const store = new MemoryDocumentStore()
  const billing = new FakeBilling(10_000_000_000n)
  // The scopes of the key. The token has some of them.
  billing.principal = { ...somebody, scopes: ['admin'] }
  const { deps, knowledge } = parts({ store })
  knowledge.add('ports', [])
  const { _id: agentId } = await createAgent(deps, context, { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['ports'] })
  const seen: (readonly string[])[] = []
  const spied = (life: Life) => {
    const world = born(store, billing, life, true)
    const { search } = world.knowledge
    Object.assign(world.knowledge, {
      search(query: ChunkQuery, context: BillingContext) {
        seen.push(context.caller.scopes)
        return search.call(world.knowledge, query, context)
      },
    })
    return world
  }
  const token = { ...context, caller: { ...somebody, scopes: ['agents', 'billing:read'] as const } }
  const life = new Life(12)
  const killed = spied(life)
  killed.runs.start(token, { agentId, input: 'When was the harbour built?' }).catch(() => undefined)
  await life.over
  const before = seen.length
  const next = spied(new Life())
  open.push(next.runs)
  const [run] = await next.deps.collections.runs.find({ organizationId: 'org_a', agentId }, { limit: 10 })
  expect(await next.runs.ended(token, run!)).toMatchObject({ status: 'completed' })
  expect(seen.length).toBeGreaterThan(before)
  expect(new Set(seen.flat())).toEqual(new Set(['agents', 'billing:read']))
})
