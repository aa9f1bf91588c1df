import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import { KisError } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { calls, completion, usage } from '../../test-support/scripted-engine.ts'
import { createAgent, updateAgent } from '../agents/agents.ts'
import { purgeDeletedWorkflows } from '../purge.ts'
import type { WorkflowRunRecord } from '../tables.ts'
import { WorkflowRuns } from './workflow-runs.ts'
import { createWorkflow, deleteWorkflow, findWorkflowVersion, getWorkflow, updateWorkflow } from './workflows.ts'

const owner: Principal = { ...somebody, scopes: ['agents', 'knowledge:read'] }
const otherOwner: Principal = { ...owner, organizationId: 'org_b' }
const code = (expected: string, param: string | null = null) => expect.objectContaining({ code: expected, param })
const reply = (content: string) =>
  completion({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: usage(20, 5) })

const open: WorkflowRuns[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

const context = { ...createRequestContext(), caller: owner }
type World = ReturnType<typeof parts>

function serving({ deps, ofRuns }: World): WorkflowRuns {
  const runs = new WorkflowRuns(deps, ofRuns)
  open.push(runs)
  return runs
}

function world() {
  const parted = parts({ balance: 10_000_000_000n })
  parted.knowledge.add('ports', ['The harbour of Sur was built in 1931.', 'The harbour of Muscat is older.'])
  parted.billing.principal = owner
  return { ...parted, runs: serving(parted) }
}

/** Simulates a crash: the process and its memory are gone, and another process gets the stores. */
function crashed(before: World) {
  const after = parts({ billing: before.billing, store: before.store })
  after.knowledge.add('ports', ['The harbour of Sur was built in 1931.', 'The harbour of Muscat is older.'])
  return after
}

let codes = 0
const createFlow = ({ deps }: Pick<World, 'deps'>, nodes: readonly object[], more: object = {}) =>
  createWorkflow(deps, context, { code: `w${codes++}`, name: 'W', definition: { nodes, output: null, ...more } })

async function ran(
  w: World & { runs: WorkflowRuns },
  nodes: readonly object[],
  more: object = {},
  input: object = {},
): Promise<WorkflowRunRecord> {
  const workflow = await createFlow(w, nodes, more)
  return w.runs.ended(context, await w.runs.start(context, { workflowId: workflow._id, ...input }))
}

const chat = (id: string, content: string, more = {}) => ({
  id,
  type: 'chat',
  model: 'chat',
  messages: [{ role: 'user', content }],
  ...more,
})
const text = (id: string, template: string, more = {}) => ({ id, type: 'template', template, ...more })
const parseOutput = ({ output }: WorkflowRunRecord) => JSON.parse(output!)
const nodeStates = ({ nodes }: WorkflowRunRecord) => Object.fromEntries(Object.entries(nodes).map(([id, { state }]) => [id, state]))
const chargedBy = ({ billing }: World) => [...billing.holds.values()].reduce((sum, { charged }) => sum + charged, 0n)

describe('Workflows', () => {
  it('have versions, are found by ID and code by their own organization, and free their code when they are deleted', async () => {
    const { deps } = world()
    const created = await createWorkflow(deps, context, { code: 'flow', name: 'Flow', definition: { nodes: [text('a', 'x')], output: 1 } })
    const changed = await updateWorkflow(deps, context, { id: created._id, definition: { nodes: [text('a', 'y')], output: 2 } })
    expect(changed).toMatchObject({ version: 2, name: 'Flow' })
    expect(await findWorkflowVersion(deps, 'org_a', created._id, 1)).toMatchObject({ output: 1 })
    expect((await getWorkflow(deps, owner, 'workflow/flow'))._id).toBe(created._id)
    await expect(getWorkflow(deps, otherOwner, created._id)).rejects.toEqual(code('not_found', 'id'))
    await expect(
      createWorkflow(deps, context, { code: 'flow', name: 'F', definition: { nodes: [text('a', 'x')], output: 1 } }),
    ).rejects.toEqual(code('already_exists', 'input.code'))
    await deleteWorkflow(deps, context, created._id)
    await expect(getWorkflow(deps, owner, 'workflow/flow')).rejects.toEqual(code('not_found', 'id'))
    await createWorkflow(deps, context, { code: 'flow', name: 'F', definition: { nodes: [text('a', 'x')], output: 1 } })
  })

  for (const [what, node, error, path] of [
    ['a model', chat('a', 'x', { model: 'nothing' }), 'model_not_found', 'model'],
    ['a model of another kind', { id: 'a', type: 'transcribe', model: 'chat', file_id: 'f' }, 'model_not_found', 'model'],
    ['a collection', { id: 'a', type: 'search', collection_id: 'col_x', query: 'x' }, 'not_found', 'collection_id'],
    ['an agent', { id: 'a', type: 'agent', agent_id: 'agt_x', input: 'x' }, 'not_found', 'agent_id'],
  ] as const) {
    it(`are refused with its path when ${what} does not exist`, async () => {
      await expect(createFlow(world(), [node])).rejects.toEqual(code(error, `input.definition.nodes[0].${path}`))
    })
  }

  it('are refused with an invalid schema at any position', async () => {
    const w = world()
    const within = (path: string) => code('invalid_request', `input.definition.${path}`)
    await expect(createFlow(w, [text('a', '', { response_schema: { type: 'nothing' } })])).rejects.toEqual(
      within('nodes[0].response_schema'),
    )
    const map = { id: 'm', type: 'map', over: [], node: { type: 'template', template: '', response_schema: { pattern: '(?=a)' } } }
    await expect(createFlow(w, [map])).rejects.toThrow(/`pattern` does not know/)
    await expect(createFlow(w, [map])).rejects.toEqual(within('nodes[0].node.response_schema'))
    await expect(createFlow(w, [text('a', '')], { inputs: { $ref: '#/nowhere' } })).rejects.toEqual(within('inputs'))
  })

  it('transcribe files for callers who may read files, and are run by callers who may run agents', async () => {
    const { deps, runs, far, knowledge, billing } = world()
    knowledge.files.set('file_1', Buffer.from('wav 2500 x'))
    far.transcript = { text: 'Good morning' }
    const caller: Principal = { ...owner, scopes: ['agents'] }
    const blind = { ...context, caller }
    const heard = { id: 'a', type: 'transcribe', model: 'speech', file_id: 'file_1' }
    const each = { id: 'a', type: 'map', over: [1], node: { type: 'transcribe', model: 'speech', file_id: 'file_1' } }
    const workflow = await createWorkflow(deps, blind, { code: 'heard', name: 'W', definition: { nodes: [text('a', 'x')], output: 1 } })
    for (const node of [heard, each]) {
      const definition = { nodes: [node], output: { $ref: 'nodes.a' } }
      await expect(createWorkflow(deps, blind, { code: 'other', name: 'W', definition })).rejects.toEqual(code('permission_denied'))
      await expect(updateWorkflow(deps, blind, { id: workflow._id, definition })).rejects.toEqual(code('permission_denied'))
    }
    await updateWorkflow(deps, context, { id: workflow._id, definition: { nodes: [heard], output: { $ref: 'nodes.a.text' } } })
    billing.principal = caller
    expect(parseOutput(await runs.ended(blind, await runs.start(blind, { workflowId: workflow._id })))).toBe('Good morning')
  })

  it('require the scope `agents`', async () => {
    const { deps, runs } = world()
    const caller = { ...owner, scopes: ['inference'] as const }
    await expect(createWorkflow(deps, { ...context, caller }, {})).rejects.toEqual(code('permission_denied'))
    await expect(runs.start({ ...context, caller }, { workflowId: 'wfl_x' })).rejects.toEqual(code('permission_denied'))
  })
})

describe('Workflow run', () => {
  it('passes outputs on, and its receipt equals its charge', async () => {
    const w = world()
    w.far.completions = [reply('In 1931.')]
    const run = await ran(
      w,
      [
        { id: 'find', type: 'search', collection_id: 'ports', query: '{{ inputs.q }}', limit: 2 },
        chat('ask', '{{ nodes.find.text }}\n\n{{ inputs.q }}'),
        text('end', '{{ nodes.find.count }}: {{ nodes.ask.text }}'),
      ],
      { output: { answer: { $ref: 'nodes.end.text' }, files: { $ref: 'nodes.find.results[*].file_name' } } },
      { inputs: { q: 'Which harbour?' } },
    )
    expect(run).toMatchObject({ status: 'completed', error: null })
    expect(parseOutput(run)).toEqual({ answer: '2: In 1931.', files: ['ports_0.txt', 'ports_1.txt'] })
    expect(w.far.requests[0]!.messages).toEqual([
      { role: 'user', content: expect.stringContaining('[#1] ports_0.txt, p. 1: The harbour of Sur') },
    ])
    expect(BigInt(run.cost!)).toBe(chargedBy(w))
    expect(Object.values(run.nodes).reduce((sum, { cost }) => sum + BigInt(cost), 0n)).toBe(BigInt(run.cost!))
    expect({ held: w.billing.held, open: w.billing.openHolds }).toEqual({ held: 0n, open: 0 })
  })

  it('is reported event by event, from any cursor, to its own organization', async () => {
    const w = world()
    const run = await ran(w, [
      text('a', 'x'),
      { id: 'm', type: 'map', over: [1, 2], at_once: 1, node: { type: 'template', template: '{{ item }}{{ nodes.a.text }}' } },
    ])
    const all = []
    for await (const { event } of w.runs.log.follow('org_a', run._id, null))
      all.push(event.type === 'node_ended' ? `${event.nodeId} ${event.state}` : event.type)
    expect(all).toEqual(['run_started', 'node_started', 'a done', 'node_started', 'item_done', 'item_done', 'm done', 'done'])
    const later = []
    for await (const { event } of w.runs.log.follow('org_a', run._id, '6')) later.push(event.type)
    expect(later).toEqual(['node_ended', 'done'])
    await expect(w.runs.log.follow('org_b', run._id, null).next()).rejects.toEqual(code('not_found', 'runId'))
    await expect(w.runs.cancel({ ...context, caller: otherOwner }, run._id)).rejects.toEqual(code('not_found', 'id'))
    await expect(w.runs.start({ ...context, caller: otherOwner }, { workflowId: run.workflowId })).rejects.toEqual(
      code('not_found', 'input.workflowId'),
    )
  })

  it('follows the chosen branch, and skips the other', async () => {
    const nodes = [
      { id: 'size', type: 'branch', cases: [{ name: 'big', when: { left: { $ref: 'inputs.n' }, op: 'gt', right: 10 } }], default: 'small' },
      text('large', 'L', { after: ['size.big'] }),
      text('little', 'l', { after: ['size.small'] }),
      text('behind', '{{ nodes.large.text }}!'),
      text('join', '{{ nodes.large.text ?? nodes.little.text }}'),
    ]
    const output = { output: '{{ nodes.join.text }}' }
    const big = await ran(world(), nodes, output, { inputs: { n: 11 } })
    expect([parseOutput(big), nodeStates(big)]).toEqual([
      'L',
      { size: 'done', large: 'done', little: 'skipped', behind: 'done', join: 'done' },
    ])
    const small = await ran(world(), nodes, output, { inputs: { n: 1 } })
    expect([parseOutput(small), nodeStates(small)]).toEqual([
      'l',
      { size: 'done', large: 'skipped', little: 'done', behind: 'skipped', join: 'done' },
    ])
    expect((await ran(world(), nodes, { output: { $ref: 'nodes.behind.text' } }, { inputs: { n: 1 } })).output).toBe('null')
  })

  it('processes a map item by item, in the order of the list, a few concurrently', async () => {
    const w = world()
    const node = { type: 'chat', model: 'chat', messages: [{ role: 'user', content: '{{ item.name }} {{ index }}' }] }
    const run = await ran(
      w,
      [{ id: 'm', type: 'map', over: { $ref: 'inputs.list' }, node }],
      { output: { $ref: 'nodes.m.items[*].text' } },
      { inputs: { list: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] } },
    )
    expect(parseOutput(run)).toEqual(['Hello there', 'Hello there', 'Hello there'])
    expect(w.far.requests.map(({ messages }) => (messages as { content: string }[])[0]!.content).sort()).toEqual(['a 0', 'b 1', 'c 2'])
    const many = await ran(
      w,
      [{ id: 'm', type: 'map', over: { $ref: 'inputs.list' }, node }],
      {},
      { inputs: { list: new Array(101).fill(1) } },
    )
    expect(many).toMatchObject({ status: 'failed', error: { code: 'run_limit_exceeded', nodeId: 'm' } })
  })

  it('asks a model again with the faults of its reply, and finally fails with them', async () => {
    const w = world()
    const response_schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const nodes = [chat('a', 'x', { response_schema }), text('b', '{{ nodes.a.output.n }}')]
    w.far.completions = [reply('no JSON'), reply('{"n": "1"}'), reply('{"n": 1}')]
    expect(parseOutput(await ran(w, nodes, { output: '{{ nodes.b.text }}' }))).toBe('1')
    expect(w.far.requests[2]!.messages).toHaveLength(5)
    w.far.completions = [reply('no JSON')]
    const failed = await ran(w, nodes)
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'output_schema_failed', nodeId: 'a' } })
    expect([w.far.chats, nodeStates(failed)]).toEqual([6, { a: 'failed', b: 'skipped' }])
    expect(BigInt(failed.cost!)).toBeGreaterThan(0n)
  })

  it('uses the version of an agent that was current when the run began', async () => {
    const w = world()
    const agent = await createAgent(w.deps, context, {
      code: 'guide',
      name: 'Guide',
      model: 'chat',
      collectionIds: ['ports'],
      instructions: 'One.',
    })
    w.far.completions = [
      completion({
        choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: toolCall() }, finish_reason: 'tool_calls' }],
        usage: usage(20, 5),
      }),
      reply('In 1931 [#1].'),
    ]
    const workflow = await createFlow(w, [{ id: 'a', type: 'agent', agent_id: 'agent/guide', input: '{{ inputs.q }}' }], {
      output: { $ref: 'nodes.a' },
    })
    const started = await w.runs.start(context, { workflowId: workflow._id, inputs: { q: 'harbour?' } })
    await updateAgent(w.deps, context, { id: agent._id, instructions: 'Two.' })
    const run = await w.runs.ended(context, started)
    expect(parseOutput(run)).toMatchObject({ text: 'In 1931 [#1].', citations: [{ mark: 1, chunk_id: 'chunk_ports_0' }] })
    expect(JSON.stringify(w.far.requests[1]!.messages)).toContain('One.')
  })

  it('numbers chunks of different nodes differently, and ignores citation marks in an input', async () => {
    const w = world()
    await createAgent(w.deps, context, { code: 'guide', name: 'Guide', model: 'chat', collectionIds: ['ports'] })
    const choice = { index: 0, message: { role: 'assistant', content: null, tool_calls: toolCall() }, finish_reason: 'tool_calls' }
    w.far.completions = [completion({ choices: [choice], usage: usage(20, 5) }), reply('In 1931 [#1] [#2] [#481].')]
    const find = (id: string) => ({ id, type: 'search', collection_id: 'ports', query: 'harbour', limit: 1 })
    const agent = { id: 'c', type: 'agent', agent_id: 'agent/guide', input: '{{ nodes.a.text }} harbour?' }
    const map = { id: 'm', type: 'map', over: [1, 2], node: { type: 'search', collection_id: 'ports', query: 'harbour', limit: 1 } }
    const run = await ran(w, [agent, find('a'), find('b'), map], {
      output: { asked: { $ref: 'nodes.c' }, found: ['{{ nodes.a.text }}', '{{ nodes.b.text }}', { $ref: 'nodes.m.items[*].text' }] },
    })
    expect(parseOutput(run)).toMatchObject({
      asked: { text: 'In 1931 [#1] [#2].', citations: [{ mark: 1 }, { mark: 2 }] },
      found: [
        expect.stringMatching(/^\[#481\]/),
        expect.stringMatching(/^\[#961\]/),
        [expect.stringMatching(/^\[#1441\]/), expect.stringMatching(/^\[#1921\]/)],
      ],
    })
    expect(JSON.stringify(w.far.requests[0]!.messages)).toContain('(#481) ports_0.txt')
  })

  it('calls MCP tools of an agent once, even when another process resumes the run', async () => {
    const w = world()
    const url = 'https://crm.test/mcp'
    const tools = [{ name: 'find', description: '', inputSchema: { type: 'object' } }]
    w.mcp.servers.set(url, { tools, respond: () => ({ text: 'Salim', isError: false }) })
    await createAgent(w.deps, context, { code: 'clerk', name: 'Clerk', model: 'chat', mcpServers: [{ name: 'crm', url }] })
    const message = { role: 'assistant', content: null, tool_calls: toolCall('crm__find', {}) }
    w.far.completions = [completion({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage: usage(20, 5) }), 'wait']
    const workflow = await createFlow(w, [{ id: 'a', type: 'agent', agent_id: 'agent/clerk', input: 'Who?' }], {
      output: '{{ nodes.a.text }}',
    })
    const started = await w.runs.start(context, { workflowId: workflow._id })
    await eventually(() => w.far.chats === 2)
    await w.runs[Symbol.asyncDispose]()
    const next = crashed(w)
    next.mcp.servers.set(url, { tools, respond: () => ({ text: 'nobody', isError: false }) })
    next.far.completions = [reply('Salim')]
    const run = await serving(next).ended(context, started)
    expect([run.status, parseOutput(run)]).toEqual(['completed', 'Salim'])
    expect([w.mcp.called.length, next.mcp.called.length]).toEqual([1, 0])
    expect(JSON.stringify(next.far.requests[0]!.messages)).toContain('Salim')
    expect([w.mcp.open, next.mcp.open]).toEqual([0, 0])
  })

  it('transcribes a file', async () => {
    const w = world()
    w.knowledge.files.set('file_1', Buffer.from('wav 2500 x'))
    w.far.transcript = { text: 'Good morning' }
    const node = { id: 'a', type: 'transcribe', model: 'speech', file_id: '{{ inputs.f }}' }
    expect(parseOutput(await ran(w, [node], { output: { $ref: 'nodes.a' } }, { inputs: { f: 'file_1' } }))).toEqual({
      text: 'Good morning',
      seconds: 2.5,
    })
    expect(await ran(w, [node], {}, { inputs: { f: 'file_2' } })).toMatchObject({ error: { code: 'not_found', nodeId: 'a' } })
  })

  it('refuses inputs that do not match the schema, and a cap above the balance, before the hold', async () => {
    const w = world()
    const workflow = await createFlow(w, [chat('a', 'x')], {
      inputs: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    })
    const start = (input: object) => w.runs.start(context, { workflowId: workflow._id, ...input })
    await expect(start({})).rejects.toEqual(code('missing_required_parameter', 'input.inputs.n'))
    await expect(start({ inputs: { n: 'x' } })).rejects.toEqual(code('invalid_type', 'input.inputs.n'))
    w.billing.balance = 10n
    await expect(start({ inputs: { n: 1 } })).rejects.toEqual(code('insufficient_quota'))
    expect([w.billing.held, w.far.chats]).toEqual([0n, 0])
  })

  it('measures an output before serialization, however often it repeats a value', async () => {
    const w = world()
    const inputs = { x: 'x'.repeat(250_000) }
    const output = Array.from({ length: 2_200 }, () => ({ $ref: 'inputs.x' }))
    const run = await ran(w, [text('a', '')], { output }, { inputs })
    expect(run).toMatchObject({ status: 'failed', output: null, error: { code: 'run_limit_exceeded', nodeId: null } })
    const messages = Array.from({ length: 50 }, () => ({ role: 'user', content: '{{ inputs.x }}' }))
    const largeRun = await ran(w, [{ ...chat('b', ''), messages }], {}, { inputs })
    expect(largeRun).toMatchObject({ status: 'failed', error: { code: 'run_limit_exceeded', nodeId: 'b' } })
  })

  it('is deleted by its owner after it ends, with its events and the results of its calls', async () => {
    const w = world()
    w.far.completions.push(reply('Sur'))
    const run = await ran(w, [chat('a', 'Where?')])
    const { collections } = w.deps
    const stored = async () => [
      await collections.workflowRuns.findOne({ _id: run._id }),
      ...(await collections.runEvents.find({ runId: run._id }, { sort: { sequence: 1 }, limit: 100 })),
      ...(await collections.keyedCalls.find({ 'step.runId': run._id }, { limit: 100 })),
    ]
    expect((await stored()).length).toBeGreaterThan(2)
    await eventually(async () => (await collections.workflowRuns.findOne({ _id: run._id }))?.job === undefined)
    await expect(w.runs.delete({ ...context, caller: otherOwner }, run._id)).rejects.toEqual(code('not_found', 'id'))
    await w.runs.delete(context, run._id)
    expect(await stored()).toEqual([null])
  })

  it('retains the versions of a deleted workflow until it has ended', async () => {
    const w = world()
    w.far.completions = ['wait']
    const workflow = await createFlow(w, [chat('a', 'Where?')])
    const run = await w.runs.start(context, { workflowId: workflow._id })
    await expect(w.runs.delete(context, run._id)).rejects.toEqual(code('in_use', 'id'))
    await deleteWorkflow(w.deps, context, workflow._id)
    expect(await findWorkflowVersion(w.deps, 'org_a', workflow._id, 1)).not.toBeNull()
    await w.runs.cancel(context, run._id)
    expect(await w.runs.ended(context, run)).toMatchObject({ status: 'cancelled' })
    await eventually(async () => (await w.deps.collections.workflowRuns.findOne({ _id: run._id }))?.job === undefined)
    await w.deps.collections.workflows.findOneAndUpdate({ _id: workflow._id }, { $set: { forgetAt: new Date(0) } })
    await purgeDeletedWorkflows(w.deps)
    expect(await findWorkflowVersion(w.deps, 'org_a', workflow._id, 1)).toBeNull()
    expect(await w.deps.collections.workflows.findOne({ _id: workflow._id })).toBeNull()
  })

  it('starts once per idempotency key, and the key is bound to its request', async () => {
    const w = world()
    const { _id: workflowId } = await createFlow(w, [chat('a', 'x')])
    const start = (input: object) => w.runs.start(context, { workflowId, idempotencyKey: 'once', ...input })
    const [first, second] = await Promise.all([start({}), start({})])
    expect(second._id).toBe(first._id)
    await w.runs.ended(context, first)
    expect(await start({})).toMatchObject({ _id: first._id, status: 'completed' })
    await expect(start({ inputs: { a: 1 } })).rejects.toEqual(code('idempotency_conflict', 'idempotencyKey'))
    expect([w.far.chats, w.billing.held]).toEqual([1, 0n])
  })

  it('ends at its spend cap, before the call that exceeds it', async () => {
    const w = world()
    const run = await ran(w, [chat('a', 'x'), chat('b', '{{ nodes.a.text }}')], { max_cost_usd: '0.0003' })
    expect(run).toMatchObject({ status: 'failed', error: { code: 'run_limit_exceeded' } })
    expect(BigInt(run.cost!)).toBeLessThanOrEqual(300_000n)
    expect(BigInt(run.cost!)).toBe(chargedBy(w))
    expect(w.billing.held).toBe(0n)
  })

  for (const [what, input, end, status, error] of [
    ['its time limit is reached', { maxSeconds: 3 }, async () => undefined, 'failed', { code: 'run_limit_exceeded' }],
    ['it is cancelled', {}, (w: { runs: WorkflowRuns }, id: string) => w.runs.cancel(context, id), 'cancelled', null],
  ] as const) {
    it(`ends when ${what}, and pays for the calls that it made`, async () => {
      const w = world()
      w.far.completions = ['wait']
      const workflow = await createFlow(w, [chat('a', 'x'), text('b', '{{ nodes.a.text }}')])
      const started = await w.runs.start(context, { workflowId: workflow._id, ...input })
      await eventually(() => w.far.chats === 1)
      await end(w, started._id)
      const run = await w.runs.ended(context, started)
      expect({ status: run.status, error: run.error }).toEqual({ status, error: error && expect.objectContaining(error) })
      expect(nodeStates(run).b).toBe('skipped')
      expect(BigInt(run.cost!)).toBe(chargedBy(w))
      expect(BigInt(run.cost!)).toBeGreaterThan(0n)
      expect({ held: w.billing.held, ended: w.far.ended }).toEqual({ held: 0n, ended: 1 })
    })
  }

  it('retries temporary errors, and fails with permanent ones', async () => {
    const w = world()
    w.far.completions = [
      new KisError('rate_limit_exceeded', 'slow'),
      new KisError('rate_limit_exceeded', 'slow'),
      new KisError('rate_limit_exceeded', 'slow'),
      reply('Yes'),
    ]
    expect(parseOutput(await ran(w, [chat('a', 'x')], { output: '{{ nodes.a.text }}' }))).toBe('Yes')
    w.far.completions = [new KisError('invalid_request', 'never')]
    const failed = await ran(w, [chat('a', 'x'), text('b', 'y', { after: ['a'] })])
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'invalid_request', message: 'never', nodeId: 'a' }, cost: '0' })
  })

  it('of another organization starts at once, when one has started more than its slots', async () => {
    const w = world()
    const other: Principal = { ...owner, organizationId: 'org_b', apiKeyId: 'key_b' }
    const own = await createFlow(w, [chat('a', 'x')])
    const definition = { nodes: [text('a', 'x')], output: '{{ nodes.a.text }}' }
    const theirs = await createWorkflow(w.deps, { ...context, caller: other }, { code: 'w', name: 'W', definition })
    w.far.completions = ['wait']
    const started = []
    for (let i = 0; i < 220; i++) started.push(await w.runs.start(context, { workflowId: own._id, maxCost: 1_000_000n }))
    await eventually(() => w.far.chats === 100)
    const run = await w.runs.ended(
      { ...context, caller: other },
      await w.runs.start({ ...context, caller: other }, { workflowId: theirs._id }),
    )
    expect(run).toMatchObject({ status: 'completed' })
    // A run that waits for a slot can be cancelled.
    const last = started.at(-1)!
    await w.runs.cancel(context, last._id)
    expect(await w.runs.ended(context, last)).toMatchObject({ status: 'cancelled', cost: '0' })
    expect(w.far.chats).toBe(100)
    for (const { _id } of started.slice(0, 60)) await w.runs.cancel(context, _id)
    await eventually(() => w.far.chats === 160)
    for (const { _id } of started) await w.runs.cancel(context, _id)
    for (const run of started) await w.runs.ended(context, run)
    await eventually(() => w.billing.held === 0n)
  }, 60_000)

  it('is refused when its organization has 500 unfinished runs, and starts when some have ended', async () => {
    const w = world()
    w.far.completions = ['wait']
    const { _id: workflowId } = await createFlow(w, [chat('a', 'x')])
    const start = () => w.runs.start(context, { workflowId, maxCost: 1_000_000n })
    const outcomes = await Promise.allSettled(Array.from({ length: 520 }, start))
    const started = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    expect(started.length).toBe(500)
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'rate_limit_exceeded', retryAfterMs: 10_000 },
    })
    await expect(start()).rejects.toEqual(code('rate_limit_exceeded'))
    for (const { _id } of started) await w.runs.cancel(context, _id)
    for (const run of started) await w.runs.ended(context, run)
    await eventually(async () => (await start()).status === 'running')
  }, 60_000)

  it('releases its slot while it only waits, and resumes where it was: each call paid once, each event reported once', async () => {
    const w = world()
    const limited = new KisError('rate_limit_exceeded', 'slow', { retryAfterMs: 4_000 })
    w.far.completions = [reply('One'), limited, limited, reply('Two')]
    const nodes = [
      {
        id: 'm',
        type: 'map',
        over: ['a', 'b'],
        at_once: 1,
        node: { type: 'chat', model: 'chat', messages: [{ role: 'user', content: '{{ item }}' }] },
      },
    ]
    const { _id: workflowId } = await createFlow(w, nodes, { output: '{{ nodes.m.items[*].text | join(" ") }}' })
    const started = await w.runs.start(context, { workflowId })
    const found = () => w.deps.collections.workflowRuns.findOne({ _id: started._id })
    await eventually(async () => (await found())!.job!.lease === null)
    expect((await found())!.job!.dueAt.getTime()).toBeGreaterThan(Date.now())
    expect(w.billing.held).toBeGreaterThan(0n)
    const run = await w.runs.ended(context, started)
    expect([run.status, parseOutput(run), w.far.chats]).toEqual(['completed', 'One Two', 4])
    expect([...w.billing.holds.values()].filter(({ charged }) => charged > 0n)).toHaveLength(2)
    const reported = []
    for await (const { event } of w.runs.log.follow('org_a', run._id, null)) reported.push(event.type)
    expect(reported).toEqual(['run_started', 'node_started', 'item_done', 'item_done', 'node_ended', 'done'])
    expect(w.billing.held).toBe(0n)
  }, 60_000)

  it('ends when it is cancelled, and at its time limit, while it waits', async () => {
    const w = world()
    w.far.completions = [new KisError('rate_limit_exceeded', 'slow', { retryAfterMs: 60_000 })]
    const { _id: workflowId } = await createFlow(w, [chat('a', 'x')])
    const waits = async (input: object) => {
      const { _id } = await w.runs.start(context, { workflowId, ...input })
      await eventually(async () => (await w.deps.collections.workflowRuns.findOne({ _id }))!.job?.lease === null)
      return _id
    }
    const cancelled = await waits({})
    await w.runs.cancel(context, cancelled)
    const late = await waits({ maxSeconds: 2 })
    const awaitEnd = async (id: string) => w.runs.ended(context, (await w.deps.collections.workflowRuns.findOne({ _id: id }))!)
    expect(await awaitEnd(cancelled)).toMatchObject({ status: 'cancelled' })
    expect(await awaitEnd(late)).toMatchObject({ status: 'failed', error: { code: 'run_limit_exceeded' } })
    expect(w.billing.held).toBe(0n)
  }, 60_000)

  it('passes to the next process when its own stops, without a charge for interrupted calls', async () => {
    const w = world()
    w.far.completions = [reply('One'), 'wait']
    const workflow = await createFlow(w, [chat('a', 'x'), chat('b', '{{ nodes.a.text }}')], { output: '{{ nodes.b.text }}' })
    const started = await w.runs.start(context, { workflowId: workflow._id })
    await eventually(() => w.far.chats === 2)
    await w.runs[Symbol.asyncDispose]()
    const next = crashed(w)
    next.far.completions = [reply('Two')]
    const run = await serving(next).ended(context, started)
    expect([run.status, parseOutput(run), next.far.chats]).toEqual(['completed', 'Two', 1])
    expect(BigInt(run.cost!)).toBe(chargedBy(w))
    expect([...w.billing.holds.values()].filter(({ charged }) => charged > 0n)).toHaveLength(2)
    expect(w.billing.held).toBe(0n)
  })

  it('continues with its cap when its hold has expired with its process', async () => {
    const w = world()
    w.far.completions = [reply('One'), 'wait']
    const workflow = await createFlow(w, [chat('a', 'x'), chat('b', '{{ nodes.a.text }}')], { output: '{{ nodes.b.text }}' })
    const started = await w.runs.start(context, { workflowId: workflow._id })
    await eventually(() => w.far.chats === 2)
    await w.runs[Symbol.asyncDispose]()
    w.billing.expireRuns()
    const next = crashed(w)
    const run = await serving(next).ended(context, started)
    expect(run.status).toBe('completed')
    expect(BigInt(run.holdAmount)).toBe(1_000_000_000n - BigInt(run.nodes.a!.cost))
    expect(w.billing.held).toBe(0n)
  })
})

function toolCall(name = 'search_ports', input: unknown = { query: 'harbour' }) {
  const [[chunk]] = calls([name, input]) as unknown as [[{ choices: [{ delta: { tool_calls: unknown } }] }]]
  return chunk.choices[0].delta.tool_calls
}
