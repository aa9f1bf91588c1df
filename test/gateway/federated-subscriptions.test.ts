import type { ExecutionResult } from 'graphql'
import { describe, expect, it } from 'vitest'
import { shop } from './support/shop.ts'
import { collect, connect, KEY, startGateway } from './support/start.ts'

/** Every result of a subscription, by a socket. */
async function results(query: string, variables: Record<string, unknown> = {}, operationName?: string) {
  const { wsUrl, seen } = await startGateway()
  const stream = collect(connect(wsUrl).client, query, variables, operationName)
  await stream.over
  return { results: stream.results, error: stream.error(), seen }
}

describe('Federated subscription events', () => {
  it('are completed over three subgraphs and two hops', async () => {
    const { results: events } = await results(
      'subscription { ticks(count: 2) { n documents { id title author { name } authors { id } } } }',
    )
    const a = { id: 'a', title: 'Document a', author: { name: 'Author 1' }, authors: [{ id: '1' }, { id: '2' }] }
    const b = { id: 'b', title: 'Document b', author: { name: 'Author 1' }, authors: [{ id: '2' }] }
    expect(events).toEqual([1, 2].map((n) => ({ data: { ticks: { n, documents: [a, b, a] } } })))
  })

  it('support an alias, a fragment and a variable that only the other subgraph sees', async () => {
    const { results: events, seen } = await results(
      `subscription ($count: Int!, $prefix: String = "the ") { t: ticks(count: $count) { docs: documents { ...F } } }
       fragment F on Document { name: title(prefix: $prefix) }`,
      { count: 1 },
    )
    const [a, b] = [{ name: 'the Document a' }, { name: 'the Document b' }]
    expect(events).toEqual([{ data: { t: { docs: [a, b, a] } } }])
    expect(seen.operations[0]).not.toContain('prefix')
  })

  it('support nested @include and @skip', async () => {
    const query = 'subscription ($x: Boolean!) { ticks(count: 1) { n documents { title @include(if: $x) author @skip(if: $x) { id } } } }'
    const included = await results(query, { x: true })
    expect(included.results[0].data.ticks.documents[0]).toEqual({ title: 'Document a' })
    const skipped = await results(query, { x: false })
    expect(skipped.results[0].data.ticks.documents[0]).toEqual({ author: { id: '1' } })
  })

  it('support interfaces, each type by its own fields', async () => {
    const { results: events } = await results(
      'subscription { ticks(count: 2) { thing { __typename id ... on Pen { ink } ... on Cup { size } } } }',
    )
    expect(events.map(({ data }) => data.ticks.thing)).toEqual([
      { __typename: 'Pen', id: 'p', ink: 'blue' },
      { __typename: 'Cup', id: 'c', size: 3 },
    ])
  })

  it('fetch each distinct entity once', async () => {
    const { seen } = await results('subscription { ticks(count: 1) { documents { title } } }')
    expect(seen.representations).toEqual([2])
  })

  it('have an error of the other subgraph at each affected path', async () => {
    const { results: events } = await results('subscription { ticks(count: 1) { documents { id boom } } }')
    expect(events[0].data.ticks.documents).toEqual([
      { id: 'a', boom: 'fine a' },
      { id: 'b', boom: null },
      { id: 'a', boom: 'fine a' },
    ])
    expect(events[0].errors).toEqual([
      {
        message: 'No such page.',
        locations: [{ line: 1, column: 49 }],
        path: ['ticks', 'documents', 1, 'boom'],
        extensions: {
          code: 'NOT_FOUND',
          type: 'invalid_request_error',
          param: 'page',
          retryAfterMs: null,
          shouldRetry: false,
          vendorCode: null,
        },
      },
    ])
  })

  it('hide the details of a defect of the other subgraph', async () => {
    const { results: events } = await results('subscription { ticks(count: 1) { author { broken } } }')
    expect(events[0].data).toEqual({ ticks: { author: { broken: null } } })
    expect(events[0].errors[0].extensions.code).toBe('INTERNAL')
    expect(JSON.stringify(events)).not.toMatch(/hunter2|billing|stack|serviceName/)
  })

  it('have an error when a subgraph is unreachable, and the socket stays open', async () => {
    const { links, seen } = shop()
    const down = { ...links.knowledge, execute: () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:4002')) }
    const { wsUrl } = await startGateway({ links: { ...links, knowledge: down } })
    const { client } = connect(wsUrl)
    const stream = collect(client, 'subscription { ticks(count: 2) { n documents { title } } }')
    await stream.over
    expect(stream.results).toHaveLength(2)
    expect(stream.results[0].errors[0].extensions.code).toBe('INTERNAL')
    expect(JSON.stringify(stream.results)).not.toContain('10.0.0.7')
    const after = collect(client, '{ ping }')
    await after.over
    expect(after.results).toEqual([{ data: { ping: 1 } }])
    expect(seen.ended).toBe(1)
  })
})

describe('Events of one subgraph', () => {
  const FAST = [
    'subscription { ticks(count: 3) { n text json flaky } }',
    'subscription { t: ticks(count: 3) { __typename number: n documents { id } } }',
    'subscription { ticks(count: 3, mode: "breaks") { n } }',
    'subscription { ticks(count: 0, mode: "refused") { n } }',
  ]
  /** The same selection by a fragment, which goes the long way. */
  const slow = (query: string) => query.replace(/(ticks\([^)]*\)) \{(.*)\} \}$/, '$1 { ... on Tick {$2} } }')

  /** The texts differ, and so do the places of errors in them. */
  const unplaced = (all: unknown) => JSON.parse(JSON.stringify(all, (key, value) => (key === 'locations' ? undefined : value)))

  for (const query of FAST) {
    it(`are passed on with the same result as by a plan: ${query}`, async () => {
      const fast = await results(query)
      expect(slow(query)).not.toBe(query)
      expect(unplaced(fast.results)).toEqual(unplaced((await results(slow(query))).results))
      expect(fast.results.length).toBeGreaterThan(0)
    })
  }

  it('have no inaccessible enum value', async () => {
    const { results: events } = await results('subscription { ticks(count: 2) { mood } }')
    expect(events.map(({ data }) => data.ticks.mood)).toEqual(['CALM', null])
    expect(JSON.stringify(events)).not.toContain('SECRET')
  })
})

describe('Errors of federated subscriptions', () => {
  it('inside one event leave the next one whole', async () => {
    const { results: events } = await results('subscription { ticks(count: 3) { n flaky } }')
    expect(events.map(({ data }) => data.ticks.flaky)).toEqual([1, null, 3])
    expect(events[1].errors).toMatchObject([{ path: ['ticks', 'flaky'], extensions: { code: 'ENGINE_ERROR' } }])
  })

  it('before the first event are the only result', async () => {
    const { results: events } = await results('subscription { ticks(count: 0, mode: "refused") { n } }')
    expect(events).toHaveLength(1)
    expect(events[0].errors[0].extensions).toMatchObject({ code: 'INSUFFICIENT_QUOTA', shouldRetry: false })
  })

  it('between events are the last result', async () => {
    const { results: events } = await results('subscription { ticks(count: 2, mode: "breaks") { n documents { title } } }')
    expect(events.map(({ errors }: ExecutionResult) => errors?.[0]?.extensions.code)).toEqual([undefined, undefined, 'INTERNAL'])
    expect(JSON.stringify(events)).not.toContain('secret detail')
  })

  for (const [what, query, variables, code = 'GRAPHQL_VALIDATION_FAILED'] of [
    ['two root fields', 'subscription { ticks(count: 1) { n } others }', {}],
    ['an unknown field', 'subscription { ticks(count: 1) { nothing } }', {}],
    ['only __typename', 'subscription { __typename }', {}],
    ['@include at the root', 'subscription ($x: Boolean!) { ticks(count: 1) @include(if: $x) { n } }', { x: true }],
    ['@defer', 'subscription { ticks(count: 1) { ... @defer { n } } }', {}],
    ['text that is not GraphQL', 'subscription {', {}, 'GRAPHQL_PARSE_FAILED'],
  ] as const) {
    it(`${what}: refused, and the socket stays open`, async () => {
      const { wsUrl } = await startGateway()
      const { client } = connect(wsUrl)
      const idle = collect(client, 'subscription { ticks(count: 1, mode: "idle") { n } }')
      const refused = collect(client, query, variables)
      await refused.over
      expect(refused.error()[0]).toMatchObject({ locations: [{ line: 1 }], extensions: { code } })
      const after = collect(client, '{ ping }')
      await after.over
      expect(after.results).toEqual([{ data: { ping: 1 } }])
      idle.cancel()
    })
  }

  it('a malformed variable is refused before any subgraph request', async () => {
    const { results: events, seen } = await results('subscription ($count: Int!) { ticks(count: $count) { n } }', { count: 'many' })
    expect(events).toHaveLength(1)
    expect(events[0].errors[0]).toMatchObject({ locations: [{ line: 1, column: 15 }], extensions: { code: 'INVALID_VARIABLES' } })
    expect(events[0].errors[0].message).toContain('$count')
    expect(seen.operations).toEqual([])
  })
})

it('a document with two subscriptions runs the named one', async () => {
  const query = 'subscription A { ticks(count: 1) { n } } subscription B { ticks(count: 1) { text } }'
  const { wsUrl } = await startGateway()
  const { client } = connect(wsUrl)
  for (const [name, expected] of [
    ['A', { n: 1 }],
    ['B', { text: 'tick 1' }],
  ] as const) {
    const stream = collect(client, query, {}, name)
    await stream.over
    expect(stream.results).toEqual([{ data: { ticks: expected } }])
  }
  const unnamed = collect(client, query)
  await unnamed.over
  expect(unnamed.error()[0].extensions.code).toBe('INVALID_REQUEST')
})

it('queries, mutations and introspection use the same socket', async () => {
  const { wsUrl } = await startGateway()
  const { client } = connect(wsUrl)
  for (const [query, data] of [
    ['{ ping documents { title } }', { ping: 1, documents: ['a', 'b', 'c'].map((id) => ({ title: `Document ${id}` })) }],
    ['mutation { poke }', { poke: 7 }],
    ['{ __schema { subscriptionType { name } } }', { __schema: { subscriptionType: { name: 'Subscription' } } }],
  ] as const) {
    const result = collect(client, query)
    await result.over
    expect(result.results).toEqual([{ data }])
  }
})

it('the caller, the request ID and the signal reach every subgraph', async () => {
  const { gateway, seen } = await startGateway()
  const context = { caller: `Bearer ${KEY}`, requestId: 'req_42', signal: new AbortController().signal }
  const query = 'subscription { ticks(count: 1) { documents { title author { name } } } }'
  for await (const { errors } of gateway.link.subscribe({ query }, context)) expect(errors).toBeUndefined()
  await gateway.link.execute({ query: '{ ping }' }, context)
  expect(seen.contexts).toHaveLength(4)
  for (const { caller, requestId, signal } of seen.contexts) {
    expect(caller).toMatchObject({ organizationId: 'org_a' })
    expect(requestId).toBe('req_42')
    expect(signal).toBe(context.signal)
  }
})
