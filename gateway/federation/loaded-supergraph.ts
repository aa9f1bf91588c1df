import { type Schema, Supergraph } from '@apollo/federation-internals'
import { QueryPlanner } from '@apollo/query-planner'
import { type GraphQLSchema, parse } from 'graphql'

/** A supergraph as the planner and the executor read it. */
export interface LoadedSupergraph {
  readonly subgraphs: readonly string[]
  readonly planner: QueryPlanner
  /** What clients see: without `@inaccessible`, `_entities` and `_service`. In Apollo's form, and in that of graphql-js. */
  readonly api: Schema
  readonly schema: GraphQLSchema
  /** Everything. */
  readonly full: GraphQLSchema
}

/** @throws {Error} the supergraph is not valid, or has a directive for security that Apollo does not know */
export function loadSupergraph(sdl: string): LoadedSupergraph {
  // Without places, which the schemas would keep: a place of each word of the text.
  // Composition has validated it; the schemas made of it are checked once more below.
  const supergraph = Supergraph.build(parse(sdl, { noLocation: true }), { validateSupergraph: false })
  const api = supergraph.apiSchema()
  return {
    subgraphs: [...supergraph.subgraphsMetadata()].map(({ name }) => name),
    planner: new QueryPlanner(supergraph),
    api,
    schema: api.toGraphQLJSSchema(),
    full: supergraph.schema.toGraphQLJSSchema(),
  }
}
