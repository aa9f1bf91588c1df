import { readFileSync } from 'node:fs'
import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { QueryPlanner } from '@apollo/query-planner'
import { type OperationDefinitionNode, parse } from 'graphql'
import { expect, it } from 'vitest'
import { passesThrough } from '../../gateway/federation/pass-through.ts'
import { SupergraphTypes } from '../../gateway/federation/supergraph-types.ts'
import { EVENT } from '../../rest-adapter/routes/agent-run-objects.ts'

const sdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const supergraph = Supergraph.build(sdl, { supportedFeatures: null })
const types = new SupergraphTypes(parse(sdl))

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
    expect(passesThrough(parseSelection(subscription), parseSelection(node.primary.operation), root, types)).toBe(true)
  })
}
