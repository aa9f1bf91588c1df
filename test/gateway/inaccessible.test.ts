import { readFileSync } from 'node:fs'
import { buildClientSchema, buildSchema, type GraphQLObjectType, getIntrospectionQuery, isObjectType } from 'graphql'
import { describe, expect, it } from 'vitest'
import type { Link } from '../../subgraphs/common/link/link.ts'
import { collect, connect, startGateway } from './support/start.ts'

const supergraphSdl = readFileSync(new URL('../../schema/supergraph.graphql', import.meta.url), 'utf8')
const supergraph = buildSchema(supergraphSdl, { assumeValidSDL: true })

/** Every field of a root type that is `@inaccessible`, as an operation that selects as much as its type lets. */
function hiddenFields() {
  return [supergraph.getQueryType(), supergraph.getMutationType(), supergraph.getSubscriptionType()].flatMap((root, kind) =>
    Object.values((root as GraphQLObjectType).getFields())
      .filter(({ astNode }) => astNode?.directives?.some(({ name }) => name.value === 'inaccessible'))
      .map(({ name }) => ({ name, operation: ['query', 'mutation', 'subscription'][kind]! })),
  )
}

const hiddenTypes = Object.values(supergraph.getTypeMap())
  .filter(({ astNode }) => astNode?.directives?.some(({ name }) => name.value === 'inaccessible'))
  .map(({ name }) => name)

/** The real supergraph over subgraphs that note what reaches them. */
async function start() {
  const reached: string[] = []
  const link: Link = {
    execute: async ({ query }) => {
      reached.push(query)
      return { data: {} }
    },
    openBytes: () => {
      throw new Error('not asked')
    },
    subscribe: () => {
      throw new Error('not asked')
    },
  }
  return { ...(await startGateway({ supergraphSdl, links: { billing: link, inference: link, knowledge: link } })), reached }
}

describe('Inaccessible fields', () => {
  it('are listed in the supergraph', () => {
    expect(hiddenFields().map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'principalOfApiKey',
        'principalOfKey',
        'placeHold',
        'settleHold',
        'embedQuery',
        'embedPassages',
        'countTokens',
      ]),
    )
    expect(hiddenTypes).toEqual(expect.arrayContaining(['Principal', 'PlaceHoldInput', 'Hold', 'QueryEmbedding']))
  })

  it('cannot be queried, by HTTP or by a socket', async () => {
    const { post, wsUrl, reached } = await start()
    const { client } = connect(wsUrl)
    for (const { name, operation } of hiddenFields()) {
      const query = `${operation} { ${name} { __typename } }`
      const { status, body } = await post({ query })
      expect(status).toBe(400)
      expect(body.errors[0].message).toContain(`Cannot query field "${name}"`)
      const socket = collect(client, query)
      await socket.over
      expect(socket.error()[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED')
    }
    expect(reached).toEqual([])
  })

  it('cannot be read from the schema, nor guessed from a suggestion', async () => {
    const { post } = await start()
    const { body } = await post({ query: getIntrospectionQuery() })
    const schema = buildClientSchema(body.data)
    const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]
    const rootFields = roots.flatMap((root) => Object.keys(root?.getFields() ?? {}))
    expect(rootFields).toContain('createChatCompletion')
    for (const name of [...hiddenFields().map((field) => field.name), '_entities', '_service']) expect(rootFields).not.toContain(name)
    for (const name of [...hiddenTypes, '_Any', '_Entity', '_Service', 'join__Graph']) expect(schema.getType(name)).toBeUndefined()
    for (const name of hiddenTypes) {
      expect((await post({ query: `{ __type(name: "${name}") { name } }` })).body.data).toEqual({ __type: null })
    }
    expect((await post({ query: 'mutation { placeHol { id } }' })).text).not.toContain('placeHold')
  })

  it('cannot be reached as an entity: _entities and _service are not fields', async () => {
    const { post, reached } = await start()
    for (const query of [
      '{ _service { sdl } }',
      'query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }',
      '{ _entities(representations: [{ __typename: "Organization", id: "org_1" }]) { ... on Organization { wallet { balance } } } }',
    ]) {
      const { status, body } = await post({ query, variables: { r: [{ __typename: 'ApiKey', id: 'key_1' }] } })
      expect(status).toBe(400)
      expect(body.errors[0].extensions.code).toBe('GRAPHQL_VALIDATION_FAILED')
    }
    expect(reached).toEqual([])
  })
})

it('every object type of the supergraph that is not hidden is visible', async () => {
  const { post } = await start()
  const { body } = await post({ query: '{ __schema { types { name } } }' })
  const visible = new Set(body.data.__schema.types.map(({ name }: { name: string }) => name))
  const missing = Object.values(supergraph.getTypeMap()).filter(
    (type) => isObjectType(type) && !type.name.startsWith('__') && !visible.has(type.name) && !hiddenTypes.includes(type.name),
  )
  expect(missing).toEqual([])
})
