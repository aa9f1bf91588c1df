import { composeServices } from '@apollo/composition'
import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { buildOperationContext, executeQueryPlan } from '@apollo/gateway'
import { type QueryPlan, QueryPlanner } from '@apollo/query-planner'
import { buildSubgraphSchema } from '@apollo/subgraph'
import fc from 'fast-check'
import { type DocumentNode, type ExecutionResult, type GraphQLSchema, getOperationAST, graphql, parse, validate } from 'graphql'
import { expect, it } from 'vitest'
import { AnswerShapes } from '../../gateway/federation/answer-shapes.ts'
import { executePlan } from '../../gateway/federation/execute-plan.ts'
import type { Fetched, FetchedError } from '../../gateway/federation/subgraph-service.ts'
import { SupergraphTypes } from '../../gateway/federation/supergraph-types.ts'
import { coerceVariables } from '../../gateway/variables.ts'
import { ABSTRACT_TYPES } from './audit/suites/abstract-types.ts'
import { ENTITIES } from './audit/suites/entities.ts'
import { REQUIRES_AND_PROVIDES } from './audit/suites/requires-and-provides.ts'
import { ROOTS_AND_INPUTS } from './audit/suites/roots-and-inputs.ts'
import type { Suite } from './audit/suites/suite.ts'

/**
 * Our executor of plans against that of @apollo/gateway, over the same plans and the same answers of the subgraphs:
 * right ones, ones that do not fit the schema, errors of fields and of whole fetches.
 */

const HEAD = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9",
  import: ["@key", "@external", "@requires", "@provides", "@override", "@shareable", "@interfaceObject", "@inaccessible"])`

interface Case {
  readonly query: string
  /** Each executes the case with what the subgraphs give spoiled. */
  readonly ours: (spoil: Spoil) => Promise<ExecutionResult>
  readonly apollos: (spoil: Spoil) => Promise<ExecutionResult>
}

type Json = Record<string, unknown>
type Answer = { data?: Json | null | undefined; errors?: readonly FetchedError[] | undefined }
/** `asked`: the operation and the entity, whatever else is asked for with it. */
type Spoil = (asked: string, data: Json) => { readonly data: Json | null; readonly errors: readonly { message: string; at: string }[] }

function casesOf({ subgraphs, tests }: Suite): readonly Case[] {
  const named = Object.entries(subgraphs).map(([name, { sdl, resolvers = {} }]) => ({ name, typeDefs: parse(`${HEAD} ${sdl}`), resolvers }))
  const { supergraphSdl } = composeServices(named.map(({ name, typeDefs }) => ({ name, url: `http://${name}`, typeDefs })))
  const supergraph = Supergraph.build(supergraphSdl!)
  const [api, full] = [supergraph.apiSchema(), supergraph.schema.toGraphQLJSSchema()]
  const schema = api.toGraphQLJSSchema()
  const types = new SupergraphTypes(parse(supergraphSdl!))
  const planner = new QueryPlanner(supergraph)
  const schemas = new Map(
    named.map(({ name, typeDefs, resolvers }) => [name, buildSubgraphSchema({ typeDefs, resolvers: resolvers as never })]),
  )
  /** Null: the operation is not valid, or has no plan. Some suites ask for what is not there. */
  const planOf = (document: DocumentNode): QueryPlan | null => {
    if (validate(schema, document).length > 0) return null
    try {
      return planner.buildQueryPlan(operationFromDocument(api, document))
    } catch {
      return null
    }
  }
  return tests.flatMap(({ query }) => {
    const document = parse(query)
    const plan = planOf(document)
    if (!plan || plan.node?.kind === 'Subscription') return []
    const { node } = plan
    const operation = getOperationAST(document)!
    // The mutations of the suites count how often they run.
    if (operation.operation === 'mutation') return []
    const shapes = new AnswerShapes(schema, { document, operation })
    const defaults = coerceVariables(schema, operation, {}, true)
    return {
      query,
      ours: (spoil) => {
        const services = Object.fromEntries(
          [...schemas].map(([name, each]) => [name, ({ query: text, variables }: Asked) => answer(each, text, variables, spoil)]),
        )
        return executePlan({ node, shapes }, types, services, defaults, {} as never)
      },
      apollos: (spoil) => {
        const services = Object.fromEntries(
          [...schemas].map(([name, each]) => [
            name,
            {
              process: ({ request }: { request: { query?: string; variables?: Json } }) =>
                answer(each, request.query!, request.variables ?? {}, spoil) as never,
            },
          ]),
        )
        const request = { request: { variables: defaults }, document, context: {}, metrics: {} }
        const context = buildOperationContext({ schema, operationDocument: document })
        return executeQueryPlan(plan, services, request as never, context, full, api) as Promise<ExecutionResult>
      },
    }
  })
}

interface Asked {
  readonly query: string
  readonly variables: Readonly<Json>
}

async function answer(schema: GraphQLSchema, source: string, variables: Readonly<Json>, spoil: Spoil): Promise<Fetched> {
  const { data, errors } = await graphql({ schema, source, variableValues: variables })
  if (!data) return { data, errors: (errors ?? []).map(({ message, path, extensions }) => ({ message, path, extensions })) }
  const copy = structuredClone(data) as Json
  const given: Answer = { errors: errors?.map(({ message, path, extensions }) => ({ message, path, extensions })) }
  const entities = copy._entities as (Json | null)[] | undefined
  const found: FetchedError[] = [...(given.errors ?? [])]
  const spoilAt = (asked: string, value: Json, path: readonly (string | number)[]) => {
    const { data: spoiled, errors: added } = spoil(asked, value)
    found.push(...added.map(({ message, at }) => ({ message, path: [...path, at], extensions: { code: 'SPOILED' } })))
    return spoiled
  }
  if (entities)
    copy._entities = entities.map((entity, i) => {
      const representation = JSON.stringify((variables.representations as unknown[])[i])
      return entity && spoilAt(`${source} ${representation}`, entity, ['_entities', i])
    })
  else given.data = spoilAt(source, copy, [])
  return { data: given.data === undefined ? copy : given.data, ...(found.length > 0 && { errors: found }) }
}

/** One of a hundred by the seed and the text, the same each time. */
function percent(seed: number, text: string): number {
  let hash = seed | 0
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 8) % 100
}

/** Replaces some values by null or by others, and adds some errors. Objects stay objects and lists stay lists. */
function spoilBy(seed: number): Spoil {
  const spoiled = (value: unknown, place: string): unknown => {
    const chance = percent(seed, place)
    if (place.endsWith('__typename')) return chance < 4 ? 'Stranger' : value
    if (value === null || chance < 6) return null
    if (Array.isArray(value)) return value.map((item, i) => spoiled(item, `${place}.${i}`))
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spoiled(each, `${place}.${key}`)]))
    return chance < 9 ? 7.5 : chance < 12 ? 'other' : chance < 15 ? true : chance < 17 ? 3 : value
  }
  return (asked, data) => {
    if (percent(seed, `${asked}!`) < 4) return { data: null, errors: [{ message: 'all of it', at: 'x' }] }
    const errors = Object.keys(data).flatMap((key) => (percent(seed, `${asked} ${key}!`) < 6 ? [{ message: `no ${key}`, at: key }] : []))
    for (const { at } of errors) data[at] = null
    return { data: spoiled(data, asked) as Json, errors }
  }
}

/**
 * What a client would read, errors in any order: both fetch at once. Without paths of errors within lists, where
 * Apollo's executor counts what it did not fetch.
 */
function read({ data, errors = [] }: ExecutionResult): unknown {
  const told = errors.map(({ message, path, extensions }) =>
    JSON.stringify([message, path?.filter((part) => typeof part === 'string'), extensions?.code]),
  )
  return JSON.parse(JSON.stringify({ data: data ?? null, errors: [...new Set(told)].toSorted() }))
}

const CASES = Object.values({ ...ENTITIES, ...REQUIRES_AND_PROVIDES, ...ABSTRACT_TYPES, ...ROOTS_AND_INPUTS }).flatMap(casesOf)

const asItIs: Spoil = (_asked, data) => ({ data, errors: [] })

it('answers as the executor of Apollo what subgraphs answer rightly', async () => {
  for (const { query, ours, apollos } of CASES) expect(read(await ours(asItIs)), query).toEqual(read(await apollos(asItIs)))
})

it('answers as the executor of Apollo what subgraphs answer wrongly', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...CASES), fc.integer(), async ({ query, ours, apollos }, seed) => {
      expect(read(await ours(spoilBy(seed))), query).toEqual(read(await apollos(spoilBy(seed))))
    }),
    { numRuns: process.env.KIS_SOAK ? 20_000 : 500 },
  )
}, 600_000)

it('places an error at its own object of a list, where others of the list are not fetched', async () => {
  const [union] = casesOf({
    subgraphs: {
      finds: {
        sdl: `type Query { finds: [Find!]! } union Find = Scroll | Coin type Scroll { lines: Int! }
          type Coin @key(fields: "id") { id: ID! }`,
        resolvers: {
          Query: { finds: () => [{ __typename: 'Scroll', lines: 9 }, ...['c', 'd'].map((id) => ({ __typename: 'Coin', id }))] },
        },
      },
      prices: {
        sdl: 'type Coin @key(fields: "id") { id: ID! worth: Int }',
        resolvers: {
          Coin: {
            worth({ id }: { id: string }) {
              if (id === 'd') throw new Error('stolen')
              return 5
            },
          },
        },
      },
    },
    tests: [{ query: '{ finds { ... on Scroll { lines } ... on Coin { worth } } }', expected: {} }],
  })
  const { data, errors } = await union!.ours(asItIs)
  expect(data).toEqual({ finds: [{ lines: 9 }, { worth: 5 }, { worth: null }] })
  expect(errors).toMatchObject([{ message: 'stolen', path: ['finds', 2, 'worth'] }])
})
