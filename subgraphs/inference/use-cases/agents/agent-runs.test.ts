import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { RunStep } from '../../domain/agents/run.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { calls, type Step, says } from '../../test-support/scripted-engine.ts'
import { embedQuery } from '../embeddings/embed-query.ts'
import { purgeDeletedAgents } from '../purge.ts'
import { MAX_RETAINED_CHARACTERS } from '../runs/retained-runs.ts'
import { fromJson } from '../runs/run-json.ts'
import type { FollowedEvent } from '../runs/run-log.ts'
import { AgentRuns, type RunInput } from './agent-runs.ts'
import { createAgent, deleteAgent, findVersion, getAgent, updateAgent } from './agents.ts'
import { deleteThread } from './threads.ts'

const owner: Principal = { ...somebody, scopes: ['agents'] }
const otherOwner: Principal = { ...owner, organizationId: 'org_b' }
const code = (expected: string, param: string | null = null) => expect.objectContaining({ code: expected, param })

const open: AgentRuns[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

async function world(scripts: readonly (readonly Step[])[] = []) {
  const parted = parts({ balance: 10_000_000_000n })
  const { deps, ofRuns, far, knowledge } = parted
  far.streams.push(...scripts)
  knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
  const context = { ...createRequestContext(), caller: owner }
  const agent = await createAgent(deps, context, { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['ports'] })
  const runs = new AgentRuns(deps, ofRuns)
  open.push(runs)
  const start = async (input: Partial<RunInput> = {}) => {
    const begun = await runs.start(context, { agentId: agent._id, input: 'When was the harbour built?', ...input })
    return { ...begun, ended: runs.ended(context, begun.run) }
  }
  const finished = async (input: Partial<RunInput> = {}) => (await start(input)).ended
  return { ...parted, context, agent, runs, start, finished }
}

async function all(events: AsyncIterable<FollowedEvent>): Promise<FollowedEvent[]> {
  const collected = []
  for await (const event of events) collected.push(event)
  return collected
}

const SEARCH = calls(['search_ports', { query: 'harbour' }])

describe('Agents', () => {
  it('have a version for each change, and retain earlier ones', async () => {
    const { deps, context, agent } = await world()
    expect(agent.version).toBe(1)
    const changed = await updateAgent(deps, context, { id: agent._id, instructions: 'Be brief.', temperature: 0.5 })
    expect(changed.version).toBe(2)
    expect(await findVersion(deps, 'org_a', agent._id, 1)).toMatchObject({ instructions: '', sampling: {} })
    expect(await findVersion(deps, 'org_a', agent._id, 2)).toMatchObject({
      name: 'Guide',
      instructions: 'Be brief.',
      sampling: { temperature: 0.5 },
    })
    expect(await findVersion(deps, 'org_b', agent._id, 2)).toBeNull()
  })

  it('retain the newest 100 versions', async () => {
    const { deps, context, agent } = await world()
    for (let change = 0; change < 101; change++) await updateAgent(deps, context, { id: agent._id, instructions: `Rule ${change}.` })
    expect(await findVersion(deps, 'org_a', agent._id, 2)).toBeNull()
    expect(await findVersion(deps, 'org_a', agent._id, 3)).toMatchObject({ instructions: 'Rule 1.' })
    expect(await deps.collections.agentVersions.find({}, { limit: 200 })).toHaveLength(100)
  })

  it('are found by ID and by code, by their own organization only, until they are deleted', async () => {
    const { deps, context, agent } = await world()
    expect((await getAgent(deps, owner, 'agent/guide'))._id).toBe(agent._id)
    for (const id of [agent._id, 'agent/guide']) await expect(getAgent(deps, otherOwner, id)).rejects.toEqual(code('not_found', 'id'))
    await deleteAgent(deps, context, agent._id)
    for (const id of [agent._id, 'agent/guide', `agent/${agent._id}`])
      await expect(getAgent(deps, owner, id)).rejects.toEqual(code('not_found', 'id'))
    await createAgent(deps, context, { code: 'guide', name: 'Another', model: 'chat' })
  })

  it('leave nothing behind when they are deleted, even after a crash, or when their code was taken', async () => {
    const { deps, context, agent, runs: _runs } = await world()
    await updateAgent(deps, context, { id: agent._id, instructions: 'Whisper.' })
    const { agents, agentVersions } = deps.collections
    const versions = async () => (await agentVersions.find({}, { limit: 100 })).map(({ _id }) => _id)
    await createAgent(deps, context, { code: 'guide', name: 'Secret', model: 'chat' }).catch(() => undefined)
    expect(await versions()).toEqual([`${agent._id}_1`, `${agent._id}_2`])
    await agents.findOneAndUpdate({ _id: agent._id }, { $set: { listed: false, forgetAt: new Date(0) } })
    await purgeDeletedAgents(deps)
    expect([await versions(), await agents.findOne({ _id: agent._id })]).toEqual([[], null])

    const other = await createAgent(deps, context, { code: 'other', name: 'Other', model: 'chat' })
    await deleteAgent(deps, context, other._id)
    expect([await versions(), await agents.findOne({ _id: other._id })]).toEqual([[], null])
  })

  for (const [what, input, error, param] of [
    ['a code that is taken', { code: 'guide' }, 'already_exists', 'input.code'],
    ['a code with a space', { code: 'my guide' }, 'invalid_request', 'input.code'],
    ['no name', { name: null }, 'missing_required_parameter', 'input.name'],
    ['an unknown model', { model: 'nothing' }, 'model_not_found', 'input.model'],
    ['an embedding model', { model: 'embed' }, 'model_not_found', 'input.model'],
    ['an unknown collection', { collectionIds: ['ports', 'nowhere'] }, 'not_found', 'input.collectionIds[1]'],
    ['too many steps', { maxSteps: 13 }, 'integer_above_max_value', 'input.maxSteps'],
    ['an invalid schema', { responseSchema: { type: 'nothing' } }, 'invalid_request', 'input.responseSchema'],
    ['a schema with a remote reference', { responseSchema: { $ref: 'https://example.com/s' } }, 'invalid_request', 'input.responseSchema'],
    ['a cap of zero', { maxCost: 0n }, 'unsupported_value', 'input.maxCost'],
  ] as const) {
    it(`are refused with ${what}`, async () => {
      const { deps, context } = await world()
      const create = createAgent(deps, context, { code: 'other', name: 'Other', model: 'chat', ...input })
      await expect(create).rejects.toEqual(code(error, param))
    })
  }

  it('require the scope `agents`', async () => {
    const { deps, context } = await world()
    const caller = { ...owner, scopes: ['inference'] as const }
    await expect(createAgent(deps, { ...context, caller }, { code: 'x', name: 'X', model: 'chat' })).rejects.toEqual(
      code('permission_denied'),
    )
  })
})

describe('Agent run', () => {
  it('of another organization has a slot when one organization uses all of its own', async () => {
    const { deps, far, runs, start } = await world()
    far.streams.push(['wait'])
    const other = { ...createRequestContext(), caller: { ...otherOwner, apiKeyId: 'key_b' } }
    const theirs = await createAgent(deps, other, { code: 'plain', name: 'Plain', model: 'chat' })
    const own = await Promise.allSettled(Array.from({ length: 260 }, () => start({ maxCost: 1_000_000n })))
    const started = own.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    expect(started).toHaveLength(250)
    expect(own.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'rate_limit_exceeded', retryAfterMs: 2_000 } })
    const run = await runs.start(other, { agentId: theirs._id, input: 'Hello?', maxCost: 1_000_000n })
    expect(run.run.status).toBe('running')
    for (const { run } of started) await runs.cancel({ ...createRequestContext(), caller: owner }, run._id)
    await Promise.all(started.map(({ ended }) => ended))
    expect((await start()).run.status).toBe('running')
  }, 60_000)

  it('issues one receipt whose lines sum to the charge, and leaves no hold', async () => {
    const { finished, billing } = await world([SEARCH, says('In 1931 [#1].')])
    const before = billing.balance
    const run = await finished()
    expect(run).toMatchObject({ status: 'completed', agentVersion: 1, error: null })
    expect(JSON.parse(run.outcome!)).toMatchObject({ text: 'In 1931 [#1].', citations: [{ mark: 1, chunkId: 'chunk_ports_0' }] })
    const steps = fromJson<readonly RunStep[]>(run.steps)
    expect(steps.map(({ kind }) => kind)).toEqual(['model', 'search', 'model'])
    const models = steps.filter(({ kind }) => kind === 'model').reduce((sum, { cost }) => sum + cost, 0n)
    expect(before - billing.balance).toBe(models)
    expect({ held: billing.held, open: billing.openHolds }).toEqual({ held: 0n, open: 0 })
  })

  it('can be followed during and after it, from any of its events, to its end', async () => {
    const { start, runs } = await world([SEARCH, says('In 1931.')])
    const { run, ended } = await start()
    const live = await all(runs.log.follow('org_a', run._id, null))
    await ended
    expect(live.map(({ sequence }) => sequence)).toEqual(live.map((_, i) => i + 1))
    expect(live.map(({ event }) => event.type)).toEqual([
      ...['run_started', 'step_started', 'usage', 'tool_call', 'search', 'usage'],
      ...['step_started', 'text_delta', 'usage', 'done'],
    ])
    expect(await all(runs.log.follow('org_a', run._id, null))).toEqual(live)
    expect(await all(runs.log.follow('org_a', run._id, '7'))).toEqual(live.slice(7))
    expect(await all(runs.log.follow('org_a', run._id, String(live.length)))).toEqual([])
    await expect(runs.log.follow('org_b', run._id, null).next()).rejects.toEqual(code('not_found', 'runId'))
    await expect(runs.log.follow('org_a', run._id, 'x').next()).rejects.toEqual(code('invalid_request', 'after'))
  })

  it('ends when it is cancelled, and pays for what was produced', async () => {
    const { start, runs, context, billing, far } = await world([[...says('A few words').slice(0, 1), 'wait']])
    const { run, ended } = await start()
    await eventually(() => far.chats === 1)
    await eventually(async () => (await all(takeFirst(runs.log.follow('org_a', run._id, null), 3))).length === 3)
    await runs.cancel(context, run._id)
    const last = await ended
    expect(last).toMatchObject({ status: 'cancelled', error: null })
    const charged = [...billing.holds.values()].reduce((sum, hold) => sum + hold.charged, 0n)
    expect(BigInt(last.cost!)).toBe(charged)
    expect(fromJson<readonly RunStep[]>(last.steps)).toEqual([{ kind: 'cut', number: 1, cost: charged }])
    expect({ held: billing.held, ended: far.ended }).toEqual({ held: 0n, ended: 1 })
    await expect(runs.cancel({ ...context, caller: otherOwner }, run._id)).rejects.toEqual(code('not_found', 'id'))
  })

  it('pays for the embedding of a search that is in flight when it is cancelled', async () => {
    const { start, runs, context, billing, near, knowledge, deps } = await world([SEARCH])
    const { embed } = near.embedding
    const released = Promise.withResolvers<void>()
    near.embedding.embed = async (call, input, signal) => {
      await released.promise
      signal.throwIfAborted()
      return embed(call, input, signal)
    }
    knowledge.search = async ({ query, step }, { signal, ...context }) => {
      const left = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      const search = { modelId: 'embed', text: query, step: `${step!.runId}/${step!.path}` }
      const { cost } = await Promise.race([left, embedQuery(deps, { ...context, signal }, search)])
      return { passages: [], cost }
    }
    const { run, ended } = await start()
    await eventually(() => [...billing.holds.values()].filter(({ runHoldId }) => runHoldId).length === 2)
    await runs.cancel(context, run._id)
    released.resolve()
    const charges = [...billing.holds.values()].map(({ charged }) => charged).filter(Boolean)
    const last = await ended
    const all = [...billing.holds.values()].map(({ charged }) => charged).filter(Boolean)
    expect([charges.length, all.length, last.status]).toEqual([1, 2, 'cancelled'])
    expect(BigInt(last.cost!)).toBe(all.reduce((sum, cost) => sum + cost))
    expect(billing.held).toBe(0n)
  })

  it('receives a cancellation through another process', async () => {
    const { start, deps, ofRuns, context, far, billing } = await world([['wait']])
    const { run, ended } = await start()
    await eventually(() => far.chats === 1)
    const elsewhere = new AgentRuns(deps, ofRuns)
    open.push(elsewhere)
    await elsewhere.cancel(context, run._id)
    expect(await ended).toMatchObject({ status: 'cancelled' })
    expect(billing.held).toBe(0n)
  })

  it('names the fallback model that served it on its receipt', async () => {
    const { deps, context, finished, far } = await world()
    const { _id } = await createAgent(deps, context, { code: 'careful', name: 'Careful', model: 'careful' })
    far.openings = [new KisError('engine_error', 'Away.', { shouldRetry: false })]
    far.streams = [says('Hello.')]
    const run = await finished({ agentId: _id })
    expect(fromJson<readonly RunStep[]>(run.steps)).toMatchObject([{ kind: 'model', modelId: 'chat' }])
  })

  it('reports why it failed', async () => {
    const { finished, billing } = await world([[new Error('secret')]])
    expect(await finished()).toMatchObject({ status: 'failed', error: { code: 'internal' }, outcome: null })
    expect(billing.held).toBe(0n)
  })

  it('does not start when the wallet cannot cover it', async () => {
    const { start, billing, far } = await world()
    billing.balance = 999n
    await expect(start()).rejects.toEqual(code('insufficient_quota'))
    expect(far.chats).toBe(0)
  })

  it('is deleted by its owner after it ends, with its events, and its end is still reported', async () => {
    const { deps, context, far, runs, start, finished } = await world([says('In 1931.')])
    const run = await finished({ idempotencyKey: 'once' })
    const { collections } = deps
    await expect(runs.delete({ ...context, caller: otherOwner }, run._id)).rejects.toEqual(code('not_found', 'id'))
    await runs.delete(context, run._id)
    expect(await collections.runs.findOne({ _id: run._id })).toBeNull()
    expect(await collections.runEvents.find({ runId: run._id }, { sort: { sequence: 1 }, limit: 100 })).toEqual([])
    const publishedEvents = await collections.events.find(
      { organizationId: 'org_a', sequence: { $gt: 0 } },
      { sort: { sequence: 1 }, limit: 10 },
    )
    expect(publishedEvents).toMatchObject([{ subject: run._id }])
    await expect(runs.delete(context, run._id)).rejects.toEqual(code('not_found', 'id'))

    far.streams.push(['wait'])
    const underWay = await start({ idempotencyKey: 'once' })
    expect(underWay.isReplayed).toBe(false)
    await expect(runs.delete(context, underWay.run._id)).rejects.toEqual(code('in_use', 'id'))
    await runs.cancel(context, underWay.run._id)
    await underWay.ended
    await runs.delete(context, underWay.run._id)
  })

  it('deletes the oldest runs of its organization, with their events, at the limit', async () => {
    const { deps, finished } = await world([says('In 1931.'), says('In 1931.'), says('In 1931.')])
    const { runs, runEvents, retainedRuns: retained } = deps.collections
    const first = await finished()
    const second = await finished({ input: 'x'.repeat(10_000) })
    expect(second.keptAt! - first.keptAt!).toBeGreaterThan(10_000)
    const [total] = await retained.find({}, { limit: 2 })
    expect(total).toEqual({ _id: 'org_a_agent', characters: second.keptAt })
    await retained.findOneAndUpdate({ _id: total!._id }, { $inc: { characters: MAX_RETAINED_CHARACTERS - 5_000 } })
    const third = await finished()
    await eventually(async () => (await runs.findOne({ _id: first._id })) === null)
    for (const { _id } of [second, third]) expect(await runs.findOne({ _id })).not.toBeNull()
    expect(await runEvents.find({ runId: first._id }, { sort: { sequence: 1 }, limit: 1 })).toEqual([])
    expect(await runEvents.find({ runId: second._id }, { sort: { sequence: 1 }, limit: 1 })).toHaveLength(1)
  })

  it('counts toward the limit even when it fails without a charge', async () => {
    const { far, finished } = await world()
    far.openings = [new KisError('engine_error', 'Away.', { shouldRetry: false })]
    const failed = await finished({ input: 'x'.repeat(10_000) })
    expect(failed).toMatchObject({ status: 'failed', cost: '0', keptOf: 'org_a' })
    expect(failed.keptAt).toBeGreaterThan(10_000)
  })

  it('does not restore a thread that was deleted while it ran', async () => {
    const { deps, context, far, finished, start } = await world([says('In 1931.')])
    const { threadId } = await finished({ keepThread: true })
    await expect(deleteThread(deps, { ...context, caller: otherOwner }, threadId!)).rejects.toEqual(code('not_found', 'id'))
    far.streams.push(says('A second time.'))
    const again = await start({ threadId: threadId! })
    await deleteThread(deps, context, threadId!)
    expect(await again.ended).toMatchObject({ status: 'completed' })
    expect(await deps.collections.threads.findOne({ _id: threadId! })).toBeNull()
    await expect(start({ threadId: threadId! })).rejects.toEqual(code('not_found', 'input.threadId'))
  })

  it('continues a stored conversation', async () => {
    const { finished, far, start } = await world([says('Hello Maryam.'), says('Maryam.')])
    const first = await finished({ input: 'I am Maryam.', keepThread: true })
    const second = await finished({ input: 'Who am I?', threadId: first.threadId })
    expect(second.threadId).toBe(first.threadId)
    expect((far.requests[1]!.messages as { role: string; content: string }[]).slice(1)).toEqual([
      { role: 'user', content: 'I am Maryam.' },
      { role: 'assistant', content: 'Hello Maryam.' },
      { role: 'user', content: 'Who am I?' },
    ])
    await expect(start({ threadId: 'thr_none' })).rejects.toEqual(code('not_found', 'input.threadId'))
  })

  it('of an earlier version fails when its process is gone, with the receipt that it had published, and notifies its followers', async () => {
    const { runs, deps, finished } = await world([SEARCH, says('In 1931.')])
    const { key: _, ...ended } = await finished()
    const lost = { ...ended, _id: 'run_lost', status: 'running', steps: '[]', leaseUntil: new Date(0), endedAt: null } as const
    await deps.collections.runs.insertOne(lost)
    const writer = await runs.log.writerFor(lost, true)
    writer.write({ type: 'run_started', agentVersion: 1 })
    for (const step of fromJson<readonly RunStep[]>(ended.steps).slice(0, 2)) writer.write({ type: 'usage', step })
    await writer.flushed()
    const followed = await all(runs.log.follow('org_a', 'run_lost', null))
    expect(followed.map(({ event }) => event.type)).toEqual(['run_started', 'usage', 'usage', 'done'])
    const swept = await deps.collections.runs.findOne({ _id: 'run_lost' })
    expect(swept).toMatchObject({ status: 'failed', cost: null, error: { code: 'service_unavailable' } })
    expect(fromJson<readonly RunStep[]>(swept!.steps).map(({ kind }) => kind)).toEqual(['model', 'search'])
  })

  it('that failed without a charge frees its idempotency key for a retry', async () => {
    const { far, start } = await world([says('Yes.')])
    far.openings = [new KisError('engine_error', 'Away.')]
    const first = await start({ idempotencyKey: 'once' })
    expect(await first.ended).toMatchObject({ status: 'failed', cost: '0', error: { code: 'engine_error' } })
    const second = await start({ idempotencyKey: 'once' })
    expect([second.isReplayed, (await second.ended).status]).toEqual([false, 'completed'])
    expect((await start({ idempotencyKey: 'once' })).run._id).toBe(second.run._id)
  })

  it('passes to the next process when its own stops: the interrupted reply is free, and followers learn that it restarts', async () => {
    const before = await world([SEARCH, [...says('In 19').slice(0, 1), 'wait']])
    const { billing, store, context, agent, runs } = before
    billing.principal = owner
    const { run } = await runs.start(context, { agentId: agent._id, input: 'When?', keepThread: true, idempotencyKey: 'once' })
    await eventually(async () => (await readEventTypes(runs, run._id)).includes('text_delta'))
    await runs[Symbol.asyncDispose]()
    const charged = () => [...billing.holds.values()].reduce((sum, hold) => sum + hold.charged, 0n)
    const first = charged()
    expect(first).toBeGreaterThan(0n)

    const after = parts({ billing, store })
    after.knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
    after.far.streams.push(says('It was built in 1931 [#1].'))
    const next = new AgentRuns(after.deps, after.ofRuns)
    open.push(next)
    const ended = await next.ended(context, run)
    expect(ended).toMatchObject({ status: 'completed', error: null })
    expect(JSON.parse(ended.outcome!)).toMatchObject({ text: 'It was built in 1931 [#1].', citations: [{ mark: 1 }] })
    expect([after.far.chats, after.knowledge.queries]).toEqual([1, []])
    expect(fromJson<readonly RunStep[]>(ended.steps).map(({ kind }) => kind)).toEqual(['model', 'search', 'model'])
    expect(BigInt(ended.cost!)).toBe(charged())
    expect({ held: billing.held, open: billing.openHolds }).toEqual({ held: 0n, open: 0 })
    expect(await readEventTypes(next, run._id)).toEqual([
      ...['run_started', 'step_started', 'usage', 'tool_call', 'search', 'usage'],
      ...['step_started', 'text_delta', 'step_started', 'text_delta', 'usage', 'done'],
    ])
    expect(await after.deps.collections.runInputs.find({ runId: run._id }, { sort: { piece: 1 }, limit: 1 })).toEqual([])
    const thread = await after.deps.collections.threads.findOne({ _id: ended.threadId! })
    expect(JSON.parse(thread!.messages)).toHaveLength(2)
    const repeat = await next.start(context, { agentId: agent._id, input: 'When?', keepThread: true, idempotencyKey: 'once' })
    expect([repeat.isReplayed, repeat.run._id]).toEqual([true, run._id])
  })
})

async function readEventTypes(runs: AgentRuns, runId: string): Promise<readonly string[]> {
  const types: string[] = []
  for await (const { type } of runs.log.written(runId)) types.push(type)
  return types
}

async function* takeFirst<T>(items: AsyncIterable<T>, count: number): AsyncGenerator<T> {
  for await (const item of items) {
    yield item
    if (--count === 0) return
  }
}
