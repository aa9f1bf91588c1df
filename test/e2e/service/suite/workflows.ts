import { expect, it } from 'vitest'
import { balancedWallet, type Json, nano } from '../../../support/client.ts'
import type { Library } from './library.ts'

/** A workflow that searches the library and asks a model. */
export function workflows(library: Library): void {
  it('a workflow runs through its nodes, is followed from any event, and costs the amount on its receipt', async () => {
    const { caller, collection } = library
    const nodes = [
      { id: 'find', type: 'search', collection_id: collection.id, query: '{{ inputs.question }}', limit: 2 },
      {
        id: 'ask',
        type: 'chat',
        model: 'extractive',
        messages: [{ role: 'user', content: '{{ nodes.find.text }}\n\n{{ inputs.question }}' }],
      },
      { id: 'end', type: 'template', template: '{{ nodes.ask.text | upper }}' },
    ]
    const definition = { nodes, output: { $ref: 'nodes.end.text' } }
    const workflow = (await caller.rest('POST', '/v1/workflows', { code: 'shout', name: 'Shout', definition })).body
    const client = caller.socket()
    const follow = async (query: string, variables: Record<string, unknown>) => {
      const events: Json[] = []
      for await (const { data, errors } of client.iterate<Json>({ query, variables })) {
        expect(errors).toBeUndefined()
        events.push(Object.values(data!)[0])
      }
      return events
    }
    const inputs = { question: 'How much are meals reimbursed a day?' }
    const FIELDS = '{ type cursor nodeId state run { id status output cost nodes { id cost } workflow { code } } }'
    const started = await follow(`subscription ($input: RunWorkflowInput!) { workflowRun(input: $input) ${FIELDS} }`, {
      input: { workflowId: 'workflow/shout', inputs },
    })
    expect(started.map(({ type, nodeId }) => [type, nodeId])).toEqual([
      ['RUN_STARTED', null],
      ...['find', 'ask', 'end'].flatMap((id) => [
        ['NODE_STARTED', id],
        ['NODE_ENDED', id],
      ]),
      ['DONE', null],
    ])
    const { run } = started.at(-1)!
    expect(run).toMatchObject({ status: 'COMPLETED', output: expect.stringContaining('60 DOLLARS'), workflow: { code: 'shout' } })
    const again = await follow(`subscription ($id: ID!) { workflowRunEvents(runId: $id, after: "3") ${FIELDS} }`, { id: run.id })
    expect(again).toEqual(started.slice(3))
    await client.dispose()
    const records = (await caller.rest('GET', '/v1/usage?limit=100')).body.data.filter(({ request_id }: Json) => request_id === run.id)
    expect(records.map(({ operation }: Json) => operation).toSorted()).toEqual(['chat_completion', 'embedding'])
    expect(records.reduce((sum: bigint, { amount_usd }: Json) => sum + nano(amount_usd), 0n)).toBe(nano(run.cost))
    expect(run.nodes.reduce((sum: bigint, { cost }: Json) => sum + nano(cost), 0n)).toBe(nano(run.cost))
    const { body: second } = await caller.rest('POST', `/v1/workflows/${workflow.id}/runs`, { inputs, wait: true })
    expect(second).toMatchObject({ status: 'completed', output: run.output, cost_usd: run.cost })
    await balancedWallet(caller)
  })
}
