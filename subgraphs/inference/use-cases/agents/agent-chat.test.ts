import { afterEach, expect, it } from 'vitest'
import { eventually } from '../../../../test/support/eventually.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { says } from '../../test-support/scripted-engine.ts'
import type { ServedDeps } from '../deps.ts'
import { ChatStreams } from '../streams/chat-streams.ts'
import { WorkflowRuns } from '../workflows/workflow-runs.ts'
import { streamByAgent } from './agent-chat.ts'
import { AgentRuns } from './agent-runs.ts'
import { createAgent } from './agents.ts'

const owner: Principal = { ...somebody, scopes: ['agents', 'inference'] }
const context = { ...createRequestContext(), caller: owner }

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const runs of open.splice(0)) await runs[Symbol.asyncDispose]()
})

function served(world: ReturnType<typeof parts>): ServedDeps {
  world.billing.principal = owner
  const runs = new AgentRuns(world.deps, world.ofRuns)
  const workflowRuns = new WorkflowRuns(world.deps, world.ofRuns)
  open.push(runs, workflowRuns)
  return { ...world.deps, runs, workflowRuns, chatStreams: new ChatStreams(world.deps) }
}

it('restarts the text after a blank line when another process repeats the call, and cites in the new text', async () => {
  const before = parts({ balance: 10_000_000_000n })
  const { billing, store } = before
  const first = served(before)
  await createAgent(first, context, { code: 'guide', name: 'Guide', model: 'chat' })
  before.far.streams.push([...says('In 19').slice(0, 1), 'wait'])
  const sent = {
    request: { model: 'agent/guide', messages: [{ role: 'user', content: 'When?' }], stream: true },
    idempotencyKey: 'once',
  }
  let emitted = ''
  const stream = async (deps: ServedDeps) => {
    emitted = ''
    for await (const { chunks } of streamByAgent(deps, context, sent))
      for (const { choices } of chunks as { choices: { delta: { content?: string } }[] }[]) emitted += choices[0]?.delta.content ?? ''
  }
  stream(first).catch(() => undefined)
  await eventually(() => emitted !== '')
  const cut = emitted
  await first.runs[Symbol.asyncDispose]()

  const after = parts({ billing, store })
  after.far.streams.push(says('In the year 1931.'))
  await stream(served(after))
  expect(emitted).toBe(`${cut}\n\nIn the year 1931.`)
})
