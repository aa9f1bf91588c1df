import { ApolloGateway } from '@apollo/gateway'
import type { QueryPlan } from '@apollo/query-planner'
import { parse } from 'graphql'
import { expect, it } from 'vitest'
import { shop } from './support/shop.ts'

/**
 * What `gateway/federation/` takes for granted of `ApolloGateway`, which does not promise it. A failure here comes before
 * a riddle elsewhere.
 */
it('ApolloGateway stores the plan of a subscription, one fetch and the rest, and sends nothing', async () => {
  const plans = new Map<string, QueryPlan>()
  const sent: unknown[] = []
  process.env.APOLLO_TELEMETRY_DISABLED = 'true'
  const gateway = new ApolloGateway({
    supergraphSdl: shop().supergraphSdl,
    buildService: () => ({ process: async ({ request }) => ({ data: { sent: sent.push(request) } }) }),
    queryPlannerConfig: {
      cache: {
        get: async (key) => plans.get(key),
        set: async (key, plan) => void plans.set(key, plan),
        delete: async (key) => plans.delete(key),
        clear: () => plans.clear(),
      },
    },
  })
  await gateway.load()
  const document = parse('subscription ($count: Int!) { ticks(count: $count) { n documents { title } } }')
  const request = { request: { variables: { count: 1 } }, document, queryHash: 'key', context: {}, metrics: {}, schema: gateway.schema }
  await expect(gateway.executor(request as unknown as Parameters<ApolloGateway['executor']>[0])).rejects.toThrow('not supported')
  expect(sent).toEqual([])
  expect(plans.get('key')).toMatchObject({
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
  await gateway.stop()
})
