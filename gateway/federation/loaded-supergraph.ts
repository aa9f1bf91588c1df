import type { QueryPlan } from '@apollo/query-planner'
import { buildASTSchema, type DocumentNode, type GraphQLSchema, Kind, parse } from 'graphql'
import type { Prepared } from '../documents.ts'
import type { Planner } from './planner.ts'

/** What `npm run compose` has made of a supergraph, so that a start need not. */
export interface ComposedSupergraph {
  /** The schema that clients see: without `@inaccessible`, `_entities` and `_service`. */
  readonly apiSdl: string
  /** Plans of the operations that the service itself sends, by the SHA-256 of their text in hexadecimal. */
  readonly plans: Readonly<Record<string, QueryPlan>>
}

/** A supergraph as the gateway reads it. */
export interface LoadedSupergraph {
  readonly sdl: string
  readonly document: DocumentNode
  readonly subgraphs: readonly string[]
  /** What clients see. */
  readonly schema: GraphQLSchema
  /** Everything. */
  readonly full: GraphQLSchema
  /**
   * Plans a valid operation. The first one that has no plan yet loads Apollo's planner, which takes a few hundred
   * milliseconds.
   */
  plan(prepared: Pick<Prepared, 'document' | 'operationName' | 'hash'>): Promise<QueryPlan>
}

/** It is valid: composition has checked it. */
const KNOWN_AS_VALID = { assumeValid: true, assumeValidSDL: true }

/**
 * Without `composed`, Apollo's packages work it out.
 * @throws {Error} they do so, and the supergraph is not valid, or has a directive that they do not know
 */
export async function loadSupergraph(sdl: string, composed?: ComposedSupergraph): Promise<LoadedSupergraph> {
  // Without places, which the schemas would keep: a place of each word of the text.
  const document = parse(sdl, { noLocation: true })
  let planner: Promise<Planner> | undefined
  const getPlanner = () => (planner ??= import('./planner.ts').then((loaded) => loaded.createPlanner(sdl)))
  return {
    sdl,
    document,
    subgraphs: subgraphsIn(document),
    schema: composed ? buildASTSchema(parse(composed.apiSdl, { noLocation: true }), KNOWN_AS_VALID) : (await getPlanner()).schema,
    full: buildASTSchema(document, KNOWN_AS_VALID),
    plan: async (prepared) => composed?.plans[prepared.hash] ?? (await getPlanner()).plan(prepared),
  }
}

/** The names in `enum join__Graph { BILLING @join__graph(name: "billing", …) … }`. */
function subgraphsIn({ definitions }: DocumentNode): readonly string[] {
  return definitions.flatMap((definition) => {
    if (definition.kind !== Kind.ENUM_TYPE_DEFINITION || definition.name.value !== 'join__Graph') return []
    const given = (definition.values ?? []).flatMap(({ directives = [] }) => directives.flatMap((directive) => directive.arguments ?? []))
    return given.flatMap(({ name, value }) => (name.value === 'name' && value.kind === Kind.STRING ? [value.value] : []))
  })
}
