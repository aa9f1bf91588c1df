import { hash } from 'node:crypto'
import { Supergraph } from '@apollo/federation-internals'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { introspectionFromSchema, isAbstractType, isCompositeType, isEnumType, isIntrospectionType, isUnionType, parse } from 'graphql'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readSubgraph, readSupergraph } from '../../schema/composed.ts'
import { operationsOfClients } from '../../schema/operations.ts'
import { subgraphSchema } from '../../subgraphs/common/link/subgraph.ts'
import { type LoadedSupergraph, loadSupergraph } from './loaded-supergraph.ts'

const { supergraphSdl, composed } = readSupergraph()

describe('what `npm run compose` has made of the supergraph', () => {
  let ahead: LoadedSupergraph
  let byApollo: LoadedSupergraph
  beforeAll(async () => {
    ahead = await loadSupergraph(supergraphSdl, composed)
    byApollo = await loadSupergraph(supergraphSdl)
  })
  afterAll(async () => {
    await Promise.all([ahead, byApollo].map((loaded) => loaded?.[Symbol.asyncDispose]()))
  })

  it('is the schema that Apollo would make of it for clients, descriptions included', () => {
    expect(introspectionFromSchema(ahead.schema)).toEqual(introspectionFromSchema(byApollo.schema))
  })

  it('has the types of everything, and the names of the subgraphs', () => {
    const supergraph = Supergraph.build(supergraphSdl, { supportedFeatures: null })
    const full = supergraph.schema.toGraphQLJSSchema()
    const all = Object.values(full.getTypeMap()).filter((type) => !isIntrospectionType(type))
    for (const type of all.filter(isEnumType)) expect(ahead.types.countValues(type.name)).toBe(type.getValues().length)
    const composite = all.filter(isCompositeType)
    for (const type of composite)
      for (const other of composite) {
        const isMember = isAbstractType(other) && !isUnionType(type) && full.isSubType(other, type)
        expect([type.name, other.name, ahead.types.isSubType(type.name, other.name)]).toEqual([
          type.name,
          other.name,
          type === other || isMember,
        ])
      }
    expect(ahead.types.isSubType('NoSuchType', 'Query')).toBe(false)
    expect(ahead.subgraphs).toEqual([...supergraph.subgraphsMetadata()].map(({ name }) => name))
    expect(ahead.subgraphs).toEqual(['billing', 'inference', 'knowledge'])
  })

  it('has the plans of the operations of chats, as Apollo plans them', async () => {
    await import('../../rest-adapter/chat/chat-operations.ts')
    const texts = operationsOfClients.filter((text) => !text.startsWith('fragment '))
    expect(texts.length).toBeGreaterThan(0)
    for (const text of texts) {
      const prepared = { text, operationName: undefined, hash: hash('sha256', text) }
      expect(composed.plans).toHaveProperty([prepared.hash])
      const planned = await byApollo.plan(prepared, 'org_a')
      expect(await ahead.plan(prepared, 'org_a')).toEqual(planned)
    }
  })

  it('leaves the plans of other operations to Apollo', async () => {
    const text = 'query Chosen { organization { id } } query Other { collections { totalCount } }'
    const { node } = await ahead.plan({ text, operationName: 'Chosen', hash: 'of this text' }, 'org_a')
    expect(node).toMatchObject({ kind: 'Fetch', serviceName: 'billing' })
  })
})

it.each(['billing', 'inference', 'knowledge'] as const)('the schema that %s executes is what Apollo makes of its SDL', (name) => {
  const { sdl } = readSubgraph(name)
  const byApollo = buildSubgraphSchema({ typeDefs: parse(sdl) })
  const options = { descriptions: false }
  expect(introspectionFromSchema(subgraphSchema(name, {}), options)).toEqual(introspectionFromSchema(byApollo, options))
})
