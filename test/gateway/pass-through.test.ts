import { readFileSync } from 'node:fs'
import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { QueryPlanner } from '@apollo/query-planner'
import { type OperationDefinitionNode, parse } from 'graphql'
import { expect, it } from 'vitest'
import { PassThrough } from '../../gateway/federation/pass-through.ts'
import { EVENT } from '../../rest-adapter/routes/agent-run-objects.ts'

const sdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const supergraph = Supergraph.build(sdl, { supportedFeatures: null })
const api = supergraph.apiSchema()
const schema = api.toGraphQLJSSchema()
const planner = new QueryPlanner(supergraph)
const passThrough = new PassThrough(parse(sdl))

function fetchOf(text: string) {
  const document = parse(text)
  const plan = planner.buildQueryPlan(operationFromDocument(api, document))
  return passThrough.fetchOf(plan, document.definitions[0] as OperationDefinitionNode, schema)
}

it.each([
  `subscription ($input: RunAgentInput!) { agentRun(input: $input) { ${EVENT} } }`,
  `subscription ($runId: ID!, $after: Cursor) { agentRunEvents(runId: $runId, after: $after) { ${EVENT} } }`,
  '{ organization { id name } }',
])('passes on the result of one fetch: %s', (text) => {
  expect(fetchOf(text)?.kind).toBe('Fetch')
})

it.each([
  ['two subgraphs', '{ organization { id } collections { totalCount } }'],
  ['objects of another subgraph', '{ organization { quota { vectors { used } } } }'],
  ['a fragment', '{ ... on Query { organization { id } } }'],
  ['a condition', 'query ($x: Boolean!) { organization { id name @include(if: $x) } }'],
  ['introspection', '{ __schema { queryType { name } } }'],
])('leaves other operations to Apollo: %s', (_what, text) => {
  expect(fetchOf(text)).toBeNull()
})
