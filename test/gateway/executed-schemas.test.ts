import { buildSubgraphSchema } from '@apollo/subgraph'
import { introspectionFromSchema, parse } from 'graphql'
import { expect, it } from 'vitest'
import { readSubgraph } from '../../schema/composed.ts'
import { subgraphSchema } from '../../subgraphs/common/link/subgraph.ts'

it.each(['billing', 'inference', 'knowledge'] as const)('the schema that %s executes is what Apollo makes of its SDL', (name) => {
  const { sdl } = readSubgraph(name)
  const byApollo = buildSubgraphSchema({ typeDefs: parse(sdl) })
  const options = { descriptions: false }
  expect(introspectionFromSchema(subgraphSchema(name, {}), options)).toEqual(introspectionFromSchema(byApollo, options))
})
