import { readFileSync } from 'node:fs'
import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { QueryPlanner } from '@apollo/query-planner'
import { type OperationDefinitionNode, parse } from 'graphql'
import { expect, it } from 'vitest'
import { passesThrough } from '../../gateway/federation/pass-through.ts'
import { EVENT } from '../../rest-adapter/routes/agent-run-objects.ts'

const supergraph = Supergraph.build(readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8'), {
  supportedFeatures: null,
})

for (const subscription of [
  `subscription ($input: RunAgentInput!) { agentRun(input: $input) { ${EVENT} } }`,
  `subscription ($runId: ID!, $after: Cursor) { agentRunEvents(runId: $runId, after: $after) { ${EVENT} } }`,
]) {
  it(`events of a run pass the gateway as they stand: ${subscription.slice(0, 60)}…`, () => {
    const document = parse(subscription)
    const api = supergraph.apiSchema()
    const { node } = new QueryPlanner(supergraph).buildQueryPlan(operationFromDocument(api, document))
    if (node?.kind !== 'Subscription') throw new Error(`a plan of kind ${node?.kind}`)
    expect(node.rest).toBeUndefined()
    const parseSelection = (text: string) => (parse(text).definitions[0] as OperationDefinitionNode).selectionSet
    const root = api.toGraphQLJSSchema().getSubscriptionType()!
    expect(
      passesThrough(parseSelection(subscription), parseSelection(node.primary.operation), root, supergraph.schema.toGraphQLJSSchema()),
    ).toBe(true)
  })
}
