import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { ApolloGateway, buildOperationContext, executeQueryPlan } from '@apollo/gateway'
import { QueryPlanner } from '@apollo/query-planner'
import { parse } from 'graphql'
import { describe, expect, it } from 'vitest'
import '../../gateway/federation/no-telemetry.ts'
import { shop } from './support/shop.ts'

/**
 * What `gateway/federation/` takes for granted of Apollo's packages, which promise no stability. A failure here comes
 * before a riddle elsewhere.
 */
describe('the federation packages of Apollo', () => {
  const { supergraphSdl } = shop()
  const supergraph = Supergraph.build(supergraphSdl)
  const api = supergraph.apiSchema()
  const document = parse('subscription ($count: Int!) { ticks(count: $count) { n documents { title } } }')
  const plan = new QueryPlanner(supergraph).buildQueryPlan(operationFromDocument(api, document, {}))

  it('plan a subscription as one fetch and the rest', () => {
    expect(plan).toMatchObject({
      kind: 'QueryPlan',
      node: {
        kind: 'Subscription',
        primary: { kind: 'Fetch', serviceName: 'inference', operationKind: 'subscription', variableUsages: ['count'] },
        rest: {
          kind: 'Sequence',
          nodes: [{ kind: 'Flatten', path: ['ticks', 'documents', '@'], node: { kind: 'Fetch', serviceName: 'knowledge' } }],
        },
      },
    })
  })

  it('execute a plan whose first fetch is answered from memory, given only this much of a request', async () => {
    if (plan.node?.kind !== 'Subscription') throw new Error('not a subscription')
    const { primary, rest } = plan.node
    const apiSchema = api.toGraphQLJSSchema()
    const asked: unknown[] = []
    const event = { ticks: { n: 1, documents: [{ __typename: 'Document', id: 'a' }] } }
    const result = await executeQueryPlan(
      { kind: 'QueryPlan', node: { kind: 'Sequence', nodes: rest ? [primary, rest] : [primary] } },
      {
        inference: { process: async ({ request }) => (request.query === primary.operation ? { data: event } : {}) },
        knowledge: {
          process: async ({ request, context }) => {
            asked.push(request.variables, context)
            return { data: { _entities: [{ title: 'A' }] }, errors: [{ message: 'half', path: ['_entities', 0, 'boom'] }] }
          },
        },
      },
      { request: { variables: { count: 1 } }, document, context: { mine: true }, metrics: {} } as unknown as Parameters<
        typeof executeQueryPlan
      >[2],
      buildOperationContext({ schema: apiSchema, operationDocument: document }),
      supergraph.schema.toGraphQLJSSchema(),
      api,
    )
    expect(asked).toEqual([{ representations: [{ __typename: 'Document', id: 'a' }] }, { mine: true }])
    expect(result.data).toEqual({ ticks: { n: 1, documents: [{ title: 'A' }] } })
    expect(result.errors).toMatchObject([{ message: 'half', path: ['ticks', 'documents', 0, 'boom'] }])
  })

  it('load a supergraph with our data sources, send no telemetry and give schema and executor', async () => {
    const names: string[] = []
    const gateway = new ApolloGateway({
      supergraphSdl,
      buildService: ({ name }) => {
        names.push(name)
        return { process: async () => ({ data: { ping: 1 } }) }
      },
    })
    const { schema, executor } = await gateway.load()
    const query = parse('{ ping }')
    const context = { request: {}, document: query, queryHash: 'h', context: {}, metrics: {}, schema }
    expect(await executor(context as unknown as Parameters<typeof executor>[0])).toEqual({ data: { ping: 1 } })
    expect(names.sort()).toEqual(['billing', 'inference', 'knowledge'])
    expect(process.env.APOLLO_TELEMETRY_DISABLED).toBe('1')
    await gateway.stop()
  })
})
