import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { QueryPlanner } from '@apollo/query-planner'
import { parse } from 'graphql'
import { describe, expect, it } from 'vitest'
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

  it('plan a fetch of entities by what it requires, at a path with all items of a list', () => {
    const query = parse('{ documents { title author { name } } }')
    expect(new QueryPlanner(supergraph).buildQueryPlan(operationFromDocument(api, query, {}))).toMatchObject({
      kind: 'QueryPlan',
      node: {
        kind: 'Sequence',
        nodes: [
          { kind: 'Fetch', serviceName: 'knowledge', variableUsages: [] },
          {
            kind: 'Flatten',
            path: ['documents', '@', 'author'],
            node: {
              kind: 'Fetch',
              serviceName: 'billing',
              requires: [
                {
                  kind: 'InlineFragment',
                  typeCondition: 'Author',
                  selections: [
                    { kind: 'Field', name: '__typename' },
                    { kind: 'Field', name: 'id' },
                  ],
                },
              ],
            },
          },
        ],
      },
    })
  })
})
