import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { composeServices } from '@apollo/composition'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, graphql, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAudit, type SuiteResult } from './run-audit.ts'

const HEAD = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9",
  import: ["@key", "@external", "@requires", "@provides", "@override", "@shareable", "@interfaceObject", "@inaccessible"])`

type Resolvers = Readonly<Record<string, object>>

interface Suite {
  /** By name: the subgraph's SDL and resolvers. */
  readonly subgraphs: Readonly<Record<string, { sdl: string; resolvers: Resolvers }>>
  readonly tests: readonly { query: string; expected: { data?: unknown; errors?: boolean } }[]
}

const prices: Readonly<Record<string, number>> = { p1: 10, p2: 2_000 }
const sum = { value: 0 }

const SUITES: Readonly<Record<string, Suite>> = {
  'entities-and-requires': {
    subgraphs: {
      catalog: {
        sdl: `type Query { products: [Product!]! product(id: ID!): Product provided: Product @provides(fields: "maker { name }") }
          type Product @key(fields: "id") { id: ID! price: Int! maker: Maker }
          type Maker @key(fields: "id") { id: ID! name: String! @external }`,
        resolvers: {
          Query: {
            products: () => [{ id: 'p1' }, { id: 'p2' }],
            product: (_: unknown, { id }: { id: string }) => (id in prices ? { id } : null),
            provided: () => ({ id: 'p1', maker: { id: 'm1', name: 'provided' } }),
          },
          Product: {
            __resolveReference: ({ id }: { id: string }) => ({ id }),
            price: ({ id }: { id: string }) => prices[id],
            maker: ({ id, maker }: { id: string; maker?: object }) => maker ?? (id === 'p1' ? { id: 'm1' } : null),
          },
        },
      },
      delivery: {
        sdl: 'type Product @key(fields: "id") { id: ID! price: Int! @external dear: Boolean! @requires(fields: "price") }',
        resolvers: { Product: { dear: ({ price }: { price: number }) => price > 1_000 } },
      },
      makers: {
        sdl: 'type Maker @key(fields: "id") { id: ID! name: String! @shareable }',
        resolvers: { Maker: { __resolveReference: ({ id }: { id: string }) => ({ id, name: `maker ${id}` }) } },
      },
    },
    tests: [
      {
        query: '{ products { id dear } }',
        expected: {
          data: {
            products: [
              { id: 'p1', dear: false },
              { id: 'p2', dear: true },
            ],
          },
        },
      },
      {
        query: '{ a: product(id: "p1") { maker { name } } b: product(id: "p2") { maker { name } } }',
        expected: { data: { a: { maker: { name: 'maker m1' } }, b: { maker: null } } },
      },
      { query: '{ product(id: "p9") { dear } }', expected: { data: { product: null } } },
      { query: '{ product(id: "p1") { id @skip(if: true) price @include(if: true) } }', expected: { data: { product: { price: 10 } } } },
      { query: '{ provided { maker { name } } }', expected: { data: { provided: { maker: { name: 'provided' } } } } },
      { query: '{ nothing }', expected: { errors: true } },
    ],
  },
  'interface-object-and-override': {
    subgraphs: {
      media: {
        sdl: `type Query { all: [Media!]! } interface Media @key(fields: "id") { id: ID! }
          type Book implements Media @key(fields: "id") { id: ID! pages: Int! } type Film implements Media @key(fields: "id") { id: ID! minutes: Int! title: String! }`,
        resolvers: {
          Query: {
            all: () => [
              { __typename: 'Book', id: 'b', pages: 9 },
              { __typename: 'Film', id: 'f', minutes: 90, title: 'old' },
            ],
          },
          Media: { __resolveReference: ({ id }: { id: string }) => ({ __typename: id === 'b' ? 'Book' : 'Film', id }) },
        },
      },
      rating: {
        sdl: 'type Media @key(fields: "id") @interfaceObject { id: ID! stars: Int! }',
        resolvers: { Media: { __resolveReference: ({ id }: { id: string }) => ({ id, stars: id === 'b' ? 5 : 3 }) } },
      },
      titles: {
        sdl: 'type Film @key(fields: "id") { id: ID! title: String! @override(from: "media") }',
        resolvers: { Film: { __resolveReference: ({ id }: { id: string }) => ({ id, title: 'new' }) } },
      },
    },
    tests: [
      {
        query: '{ all { __typename id stars ... on Book { pages } ... on Film { title } } }',
        expected: {
          data: {
            all: [
              { __typename: 'Book', id: 'b', stars: 5, pages: 9 },
              { __typename: 'Film', id: 'f', stars: 3, title: 'new' },
            ],
          },
        },
      },
    ],
  },
  'mutations-in-order': {
    subgraphs: {
      adding: {
        sdl: 'type Query { a: Int @shareable } type Mutation { add(by: Int!): Int! }',
        resolvers: { Mutation: { add: (_: unknown, { by }: { by: number }) => (sum.value += by) } },
      },
      timing: {
        sdl: 'type Query { a: Int @shareable } type Mutation { multiply(by: Int!): Int! }',
        resolvers: { Mutation: { multiply: (_: unknown, { by }: { by: number }) => (sum.value *= by) } },
      },
    },
    tests: [
      { query: 'mutation { x: add(by: 5) y: multiply(by: 2) z: add(by: 2) }', expected: { data: { x: 5, y: 10, z: 12 } } },
      { query: '{ a }', expected: { data: { a: null }, errors: false } },
    ],
  },
  'what a gateway must not pass': {
    subgraphs: {
      one: { sdl: 'type Query { one: Int! secret: Int @inaccessible }', resolvers: { Query: { one: () => 1, secret: () => 2 } } },
    },
    tests: [
      { query: '{ one }', expected: { data: { one: 2 } } },
      { query: '{ one }', expected: { data: { one: 1 }, errors: true } },
      { query: '{ secret }', expected: { errors: true } },
    ],
  },
}

describe('the federation audit', () => {
  const schemas = new Map<string, GraphQLSchema>()
  let url: string
  const server = createServer(async (request, response) => {
    const [suite, what] = decodeURIComponent(request.url!).slice(1).split('/') as [string, string | undefined]
    const schema = schemas.get(`${suite}/${what}`)
    if (suite === 'ids') response.end(JSON.stringify(Object.keys(SUITES)))
    else if (what === 'tests') response.end(JSON.stringify(SUITES[suite]!.tests))
    else if (what === 'supergraph') response.end(composeSuite(suite))
    else response.end(JSON.stringify(await answer(schema!, request)))
  })
  const composeSuite = (id: string): string => {
    const services = Object.entries(SUITES[id]!.subgraphs).map(([name, { sdl }]) => ({
      name,
      url: `${url}/${encodeURIComponent(id)}/${name}`,
      typeDefs: parse(`${HEAD} ${sdl}`),
    }))
    const { supergraphSdl, errors } = composeServices(services)
    if (errors) throw new Error(errors.map(({ message }) => message).join('\n'))
    return supergraphSdl
  }
  const answer = async (schema: GraphQLSchema, request: IncomingMessage) => {
    const { query, variables } = (await json(request)) as { query: string; variables?: Record<string, unknown> }
    return graphql({ schema, source: query, variableValues: variables })
  }
  const results: SuiteResult[] = []

  beforeAll(async () => {
    for (const [id, { subgraphs }] of Object.entries(SUITES))
      for (const [name, { sdl, resolvers }] of Object.entries(subgraphs))
        schemas.set(`${id}/${name}`, buildSubgraphSchema({ typeDefs: parse(`${HEAD} ${sdl}`), resolvers: resolvers as never }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for await (const suite of runAudit(url)) results.push(suite)
  })
  afterAll(() => void server.close())

  it('passes entities, @requires, @provides, @override, @interfaceObject and mutations in order', () => {
    expect(results.slice(0, 3)).toEqual([
      { id: 'entities-and-requires', passed: [true, true, true, true, true, true] },
      { id: 'interface-object-and-override', passed: [true] },
      { id: 'mutations-in-order', passed: [true, true] },
    ])
  })

  it('counts a case as failed when its data or its errors are not as expected', () => {
    expect(results[3]!.passed).toEqual([false, false, true])
  })
})
