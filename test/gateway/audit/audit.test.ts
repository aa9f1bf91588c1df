import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { composeServices } from '@apollo/composition'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, graphql, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runAudit, type SuiteResult } from './run-audit.ts'
import { ABSTRACT_TYPES } from './suites/abstract-types.ts'
import { ENTITIES } from './suites/entities.ts'
import { REQUIRES_AND_PROVIDES } from './suites/requires-and-provides.ts'
import { ROOTS_AND_INPUTS } from './suites/roots-and-inputs.ts'
import type { Suite } from './suites/suite.ts'

const HEAD = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9",
  import: ["@key", "@external", "@requires", "@provides", "@override", "@shareable", "@interfaceObject", "@inaccessible"])`

const PASSING: Readonly<Record<string, Suite>> = { ...ENTITIES, ...REQUIRES_AND_PROVIDES, ...ABSTRACT_TYPES, ...ROOTS_AND_INPUTS }

const SUITES: Readonly<Record<string, Suite>> = {
  ...PASSING,
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

describe('Federation audit', () => {
  const schemas = new Map<string, GraphQLSchema>()
  let url: string
  const server = createServer(async (request, response) => {
    const [suite, what] = decodeURIComponent(request.url!).slice(1).split('/') as [string, string | undefined]
    const schema = schemas.get(`${suite}/${what}`)
    if (suite === 'ids') response.end(JSON.stringify(Object.keys(SUITES)))
    else if (what === 'tests') response.end(JSON.stringify(SUITES[suite]!.tests))
    else if (what === 'supergraph') response.end(composeSuite(suite))
    else response.end(JSON.stringify(await respond(schema!, request)))
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
  const respond = async (schema: GraphQLSchema, request: IncomingMessage) => {
    const { query, variables } = (await json(request)) as { query: string; variables?: Record<string, unknown> }
    return graphql({ schema, source: query, variableValues: variables })
  }
  const results = new Map<string, SuiteResult>()

  beforeAll(async () => {
    for (const [id, { subgraphs }] of Object.entries(SUITES))
      for (const [name, { sdl, resolvers = {} }] of Object.entries(subgraphs))
        schemas.set(`${id}/${name}`, buildSubgraphSchema({ typeDefs: parse(`${HEAD} ${sdl}`), resolvers: resolvers as never }))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for await (const suite of runAudit(url)) results.set(suite.id, suite)
  })
  afterAll(() => void server.close())

  it.each(Object.keys(PASSING))('passes %s', (id) => {
    expect(results.get(id)).toEqual({ id, passed: PASSING[id]!.tests.map(() => true) })
  })

  it('counts a case as failed when its data or its errors differ from the expected', () => {
    expect(results.get('what a gateway must not pass')!.passed).toEqual([false, false, true])
  })
})
