import { expect, it } from 'vitest'
import { eventChecks } from '../../../../test/support/engines/webhook-receiver.ts'
import { eventLogSource } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { createRequestContext, parts, somebody } from '../../test-support/parts.ts'
import { says } from '../../test-support/scripted-engine.ts'
import { AgentRuns } from '../agents/agent-runs.ts'
import { createAgent } from '../agents/agents.ts'
import { WorkflowRuns } from '../workflows/workflow-runs.ts'
import { createWorkflow } from '../workflows/workflows.ts'
import { toWebhookEvent } from './run-ends.ts'

const owner = { ...somebody, scopes: ['agents' as const] }
const context = { ...createRequestContext(), caller: owner }
const checks = eventChecks()

function expectDescribed(events: readonly WebhookEvent[]): void {
  for (const { type, data } of events) expect([type, checks.get(type)!(data), checks.get(type)!.errors]).toEqual([type, true, null])
}

it('each end of a run, of an agent or a workflow, is reported once, as specified, and only to its organization', async () => {
  const { deps, ofRuns, far, billing, knowledge } = parts({ balance: 10_000_000_000n })
  billing.principal = owner
  knowledge.add('ports', ['The harbour of Sur was built in 1931.'])
  far.streams.push([...says('In 1931.')])
  const agents = new AgentRuns(deps, ofRuns)
  const workflows = new WorkflowRuns(deps, ofRuns)
  const agent = await createAgent(deps, context, { code: 'guide', name: 'Guide', model: 'chat' })
  const ended = await agents.ended(context, (await agents.start(context, { agentId: agent._id, input: 'When?' })).run)
  const template = { id: 'a', type: 'template', template: 'x' }
  const workflow = await createWorkflow(deps, context, { code: 'flow', name: 'Flow', definition: { nodes: [template], output: 1 } })
  const done = await workflows.ended(context, await workflows.start(context, { workflowId: workflow._id }))
  // The first call of the run alone may cost more.
  const failed = await agents.ended(context, (await agents.start(context, { agentId: agent._id, input: 'And then?', maxCost: 1n })).run)
  await deps.runEnds.drain('org_a')

  const source = eventLogSource(deps.runEnds, toWebhookEvent)
  const { events, cursor } = await source.read('org_a', 0)
  expect(events.map(({ type, subject }) => [type, subject]).toSorted()).toEqual(
    [
      ['agent_run.completed', ended._id],
      ['workflow_run.completed', done._id],
      [`agent_run.${failed.status}`, failed._id],
    ].toSorted(),
  )
  expectDescribed(events)
  expect(events.find(({ subject }) => subject === failed._id)!.data).toMatchObject({ status: 'failed', error_code: failed.error!.code })
  expect(await source.read('org_a', cursor)).toEqual({ events: [], cursor })
  expect(await source.read('org_b', 0)).toEqual({ events: [], cursor: 0 })
  for (const runs of [agents, workflows]) await runs[Symbol.asyncDispose]()
})
