import { readFileSync } from 'node:fs'
import { buildSchema, type GraphQLSchema, getOperationAST, parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import { Costs } from '../../gateway/federation/costs.ts'
import { coerceVariables } from '../../gateway/variables.ts'
import { DEFAULT_OPERATION_NODES } from '../../subgraphs/common/catalog/plan.ts'
import { CONFIG, collect, connect, KEY, startGateway } from './support/start.ts'

const SDL = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const schema: GraphQLSchema = buildSchema(SDL, { assumeValidSDL: true })
const costs = new Costs(parse(SDL))

function estimateCost(query: string, inputs: Record<string, unknown> = {}) {
  const document = parse(query)
  const operation = getOperationAST(document)!
  return costs.of({ document, operation }, schema, coerceVariables(schema, operation, inputs, true))
}

/** 15 pages of a hundred documents, each with a page of a hundred of its collection. */
const INNER = 'documents(first: 100) { edges { node { collection { documents(first: 100) { edges { node { id } } } } } } }'
const BOMB = `{ ${Array.from({ length: 15 }, (_, i) => `a${i}: collection(id: "${i}") { ${INNER} }`).join(' ')} }`

describe('Operation cost in nodes', () => {
  for (const { name, query, variables = {}, nodes } of [
    { name: 'one object', query: '{ organization { name } }', nodes: 1 },
    {
      name: 'a page of the requested length',
      query: '{ files(first: 7) { edges { node { id } cursor } pageInfo { endCursor } } }',
      nodes: 7,
    },
    { name: 'a page of the default length', query: '{ files { edges { node { id } } } }', nodes: 20 },
    { name: 'a page whose length is null', query: '{ files(first: null) { edges { node { id } } } }', nodes: 20 },
    {
      name: 'a page by a variable',
      query: 'query ($n: Int) { files(first: $n) { edges { node { id } } } }',
      variables: { n: 33 },
      nodes: 33,
    },
    { name: 'a page by the default of a variable', query: 'query ($n: Int = 5) { files(first: $n) { edges { node { id } } } }', nodes: 5 },
    { name: 'a page by a variable that was left out', query: 'query ($n: Int) { files(first: $n) { edges { node { id } } } }', nodes: 20 },
    {
      name: 'pages inside pages',
      query: '{ collections(first: 10) { edges { node { documents(first: 10) { edges { node { file { id } } } } } } } }',
      nodes: 10 + 10 * 10 * 2,
    },
    {
      name: 'merged fields, once',
      query:
        '{ ...A ...A files(first: 7) { ...E edges { node { name } } } } fragment A on Query { files(first: 7) { ...E } } fragment E on FileConnection { edges { node { id } } }',
      nodes: 7,
    },
    {
      name: 'skipped fields, not at all',
      query:
        'query ($no: Boolean = false) { files(first: 7) @include(if: $no) { edges { node { id } } } organization @skip(if: true) { id } }',
      nodes: 0,
    },
    {
      name: 'a list whose length the schema states',
      query: '{ models { id price { tiers { input } } } }',
      nodes: 100 * (1 + 1 + 8),
    },
    { name: 'an expensive field by its weight', query: '{ fileContent(id: "a") { content } }', nodes: 500 },
    {
      name: 'the most expensive type that a value may have',
      query:
        '{ node(id: "a") { ... on Agent { runs(first: 1) { edges { node { id } } } } ... on Workflow { runs(first: 50) { edges { node { id } } } } } }',
      nodes: 1 + 50,
    },
    { name: 'one for each ID', query: 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', variables: { ids: ['a', 'b', 'c'] }, nodes: 3 },
    { name: 'introspection, not at all', query: '{ __schema { types { name } } __typename }', nodes: 0 },
    { name: 'the event of a subscription', query: 'subscription { documentUpdated { document { file { id } } } }', nodes: 3 },
    {
      name: 'each sum of usage, and each count of a list, on each of the objects around it',
      query:
        '{ usage(first: 100) { edges { node { apiKey { organization { usageSummary { since } wallet { entries { totalCount } } } } } } } }',
      nodes: 100 * (1 + 1 + 1 + 200 + 1 + 50),
    },
    { name: 'the issue of 15 aliases', query: BOMB, nodes: 15 * (1 + 100 * (1 + 1 + 100)) },
  ]) {
    it(`counts ${name}`, () => expect(estimateCost(query, variables).nodes).toBe(nodes))
  }

  it('is reported with the root field that has most of the nodes', () => {
    expect(estimateCost('{ organization { id } mine: files(first: 50) { edges { node { id } } } }').mostExpensive).toEqual({
      name: 'mine',
      nodes: 50,
    })
  })
})

it('admits the most expensive lists of the REST adapter, at their longest page', () => {
  for (const query of [
    'query ($first: Int!) { agent(id: "a") { runs(first: $first) { edges { node { id agentId agentVersion status messages outputText output citations { mark collection { id } document { id } file { id } } steps { kind model { id } collection { id } usage { totalTokens } cost } usage { totalTokens } cost error { code message } } cursor } } } }',
    'query ($first: Int!) { workflow(id: "a") { runs(first: $first) { edges { node { id status inputs output nodes { id state output error { code } } error { code } } } } } }',
    'query ($first: Int!) { agents(first: $first) { edges { node { id model { id } instructions collections { id } mcpServers { name } responseSchema } } } }',
    'query ($first: Int!) { usage(first: $first) { edges { node { id quantities { unit } model { id } apiKey { id } } } } }',
    '{ usageSummary { groups { model { id } apiKey { id } totals { calls } } } }',
    '{ models { id price { input tiers { input } } } }',
  ])
    expect(estimateCost(query, query.includes('$first') ? { first: 100 } : {}).nodes).toBeLessThanOrEqual(DEFAULT_OPERATION_NODES)
})

it('refuses an operation above the plan, on every transport, with the figures, without a subgraph request', async () => {
  const dear = await startGateway({ config: { ...CONFIG, countNodes: () => 200 } })
  const query = '{ documents { author { name } } all: documents { authors { name } } }'
  const events = 'subscription { ticks(count: 1) { documents { authors { name } author { name } } author { name } } }'
  expect((await dear.post({ query })).body.errors).toBeUndefined()
  const cheap = await startGateway({ config: { ...CONFIG, countNodes: () => 100 } })
  const context = { caller: KEY, requestId: 'req_1', signal: new AbortController().signal }
  const socket = collect(connect(cheap.wsUrl).client, events)
  await socket.over
  for (const errors of [
    (await cheap.post({ query })).body.errors,
    (await cheap.gateway.link.execute({ query }, context)).errors,
    socket.error() ?? socket.results[0].errors,
  ]) {
    expect(errors[0].extensions.code).toBe('OPERATION_TOO_COMPLEX')
    expect(errors[0].message).toMatch(/^The result may have \d+ nodes, \d+ of them in `(all|ticks)`; the plan `p` allows 100\./)
  }
  expect(cheap.seen.operations).toEqual([])
})
