import type { QueryPlan } from '@apollo/query-planner'
import { buildASTSchema, type DocumentNode, type GraphQLSchema, Kind, parse } from 'graphql'
import { PlannerClient, type ToPlan } from './planner-client.ts'
import { SupergraphTypes } from './supergraph-types.ts'

/** What `npm run compose` has made of a supergraph, so that a start need not. */
export interface ComposedSupergraph {
  /** The schema that clients see: without `@inaccessible`, `_entities` and `_service`. */
  readonly apiSdl: string
  /** Plans of the operations that the service itself sends, by the SHA-256 of their text in hexadecimal. */
  readonly plans: Readonly<Record<string, QueryPlan>>
}

/** A supergraph as the gateway reads it. */
export interface LoadedSupergraph extends AsyncDisposable {
  readonly sdl: string
  readonly document: DocumentNode
  readonly subgraphs: readonly string[]
  /** What clients see. */
  readonly schema: GraphQLSchema
  readonly types: SupergraphTypes
  /**
   * Plans a valid operation. Organizations take turns.
   * @throws {KisError} `operation_too_complex`: planning it takes too long, or too much memory
   * @throws {ServiceUnavailable} the planner could not start, or has ended
   * @throws {TooBusy} too many operations of the organization wait
   */
  plan(operation: ToPlan, organizationId: string): Promise<QueryPlan>
}

/** It is valid: composition has checked it. */
const KNOWN_AS_VALID = { assumeValid: true, assumeValidSDL: true }

/**
 * Without `composed`, Apollo's packages work it out in this thread, at once.
 * @throws {Error} they do so, and the supergraph is not valid, or has a directive that they do not know
 */
export async function loadSupergraph(sdl: string, composed?: ComposedSupergraph): Promise<LoadedSupergraph> {
  // Without places, which the schemas would keep: a place of each word of the text.
  const document = parse(sdl, { noLocation: true })
  const { apiSdl, plan, end } = composed ? usePlannerThread(sdl, composed) : await planHere(sdl)
  return {
    sdl,
    document,
    subgraphs: subgraphsIn(document),
    schema: buildASTSchema(parse(apiSdl, { noLocation: true }), KNOWN_AS_VALID),
    types: new SupergraphTypes(document),
    plan,
    [Symbol.asyncDispose]: end,
  }
}

interface Planning extends Pick<LoadedSupergraph, 'plan'> {
  readonly apiSdl: string
  end(): Promise<void>
}

function usePlannerThread(sdl: string, { apiSdl, plans }: ComposedSupergraph): Planning {
  const planner = new PlannerClient(sdl)
  return {
    apiSdl,
    plan: async (operation, organizationId) => plans[operation.hash] ?? planner.plan(operation, organizationId),
    end: () => planner[Symbol.asyncDispose](),
  }
}

async function planHere(sdl: string): Promise<Planning> {
  const { createPlanner } = await import('./planner.ts')
  const { apiSdl, plan } = createPlanner(sdl)
  return { apiSdl, plan: async ({ text, operationName }) => plan(text, operationName), end: async () => undefined }
}

/** The names in `enum join__Graph { BILLING @join__graph(name: "billing", …) … }`. */
function subgraphsIn({ definitions }: DocumentNode): readonly string[] {
  return definitions.flatMap((definition) => {
    if (definition.kind !== Kind.ENUM_TYPE_DEFINITION || definition.name.value !== 'join__Graph') return []
    const given = (definition.values ?? []).flatMap(({ directives = [] }) => directives.flatMap((directive) => directive.arguments ?? []))
    return given.flatMap(({ name, value }) => (name.value === 'name' && value.kind === Kind.STRING ? [value.value] : []))
  })
}
