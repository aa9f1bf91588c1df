import { operationFromDocument, Supergraph } from '@apollo/federation-internals'
import { type QueryPlan, QueryPlanner } from '@apollo/query-planner'
import { parse, printSchema } from 'graphql'

/** Apollo's planner for one supergraph. */
export interface Planner {
  /** The schema that clients see. */
  readonly apiSdl: string
  /** The operation must be valid, and named if the text has several. */
  plan(text: string, operationName?: string): QueryPlan
}

const LINK_OF_ENFORCED = /(url: "https:\/\/specs\.apollo\.dev\/(?:authenticated|requiresScopes)\/[^"]+"), for: SECURITY/g

/** @throws {Error} the supergraph is not valid, or has a directive that Apollo's packages do not know */
export function createPlanner(sdl: string): Planner {
  // Apollo refuses a supergraph with security directives that it does not enforce. The gateway enforces these.
  const loadable = parse(sdl.replaceAll(LINK_OF_ENFORCED, '$1'), { noLocation: true })
  const supergraph = Supergraph.build(loadable, { validateSupergraph: false })
  const api = supergraph.apiSchema()
  const planner = new QueryPlanner(supergraph)
  return {
    get apiSdl() {
      return printSchema(api.toGraphQLJSSchema())
    },
    plan(text, operationName) {
      const named = operationName === undefined ? {} : { operationName }
      return planner.buildQueryPlan(operationFromDocument(api, parse(text, { noLocation: true }), named))
    },
  }
}
