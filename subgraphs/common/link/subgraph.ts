import { readFileSync } from 'node:fs'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, isInputObjectType, isObjectType, parse, valueFromAST } from 'graphql'
import type { LinkContext } from './link.ts'
import { scalars } from './scalars.ts'

export type SubgraphName = 'billing' | 'inference' | 'knowledge'

/** What a resolver gets as its third argument. */
export interface ResolverContext<Deps> extends LinkContext {
  readonly deps: Deps
}

/** A running subgraph, ready to be put behind a local link or served to remote ones. Disposing it stops its work and closes its stores. */
export interface Subgraph extends AsyncDisposable {
  readonly name: SubgraphName
  readonly schema: GraphQLSchema
  /** The one place where a resolver's context is made. */
  contextOf(context: LinkContext): ResolverContext<unknown>
  /** Why parts cannot serve at the moment, `<part>: <sentence>`; empty when ready. Answers within 2 s. */
  problems(): Promise<readonly string[]>
}

/** A subgraph with stores of its own. */
export interface StoringSubgraph extends Subgraph {
  /** Resolves when its stores are open, which may be long after it serves; rejects with what no waiting mends. */
  readonly opened: Promise<unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: graphql-js hands over parents and arguments that it has checked against the SDL; resolvers name their shapes
type Checked = any
type FieldResolver<Deps> = (parent: Checked, args: Checked, context: ResolverContext<Deps>) => unknown
interface SubscriptionField<Deps> {
  /** Gives a hand-made iterator, never an async generator, whose `return()` would wait. */
  readonly subscribe: (parent: Checked, args: Checked, context: ResolverContext<Deps>) => AsyncIterable<unknown>
  readonly resolve?: FieldResolver<Deps>
}

/** Field resolvers by type; for an enum, the inner value of each SDL value. */
export type Resolvers<Deps> = Record<string, Record<string, FieldResolver<Deps> | SubscriptionField<Deps> | string>>

/** The executable schema of `schema/<name>.graphql`. */
export function subgraphSchema<Deps>(name: SubgraphName, resolvers: Resolvers<Deps>): GraphQLSchema {
  const typeDefs = parse(readFileSync(new URL(`../../../schema/${name}.graphql`, import.meta.url), 'utf8'))
  const declared = new Set(typeDefs.definitions.flatMap((node) => (node.kind === 'ScalarTypeDefinition' ? [node.name.value] : [])))
  const ownScalars = Object.fromEntries(Object.entries(scalars).filter(([scalar]) => declared.has(scalar)))
  const schema = buildSubgraphSchema({ typeDefs, resolvers: { ...ownScalars, ...resolvers } as never })
  coerceDefaults(schema)
  return schema
}

/** The schema was built before its scalars and enums knew their inner values, so the defaults of the SDL are read again with them. */
function coerceDefaults(schema: GraphQLSchema): void {
  for (const type of Object.values(schema.getTypeMap())) {
    const inputs = isInputObjectType(type)
      ? Object.values(type.getFields())
      : isObjectType(type)
        ? Object.values(type.getFields()).flatMap((field) => field.args)
        : []
    for (const input of inputs) if (input.astNode?.defaultValue) input.defaultValue = valueFromAST(input.astNode.defaultValue, input.type)
  }
}
