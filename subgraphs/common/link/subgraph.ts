import { readFileSync } from 'node:fs'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, isInputObjectType, isObjectType, parse, valueFromAST } from 'graphql'
import { innerValues } from '../../../schema/inner-values.ts'
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

/** The executable schema of `schema/<name>.graphql`. `resolvers` are of the type that is generated for the subgraph; scalars and enums are given here. */
export function subgraphSchema(name: SubgraphName, resolvers: object): GraphQLSchema {
  const typeDefs = parse(readFileSync(new URL(`../../../schema/${name}.graphql`, import.meta.url), 'utf8'))
  const declared = new Set(typeDefs.definitions.flatMap((node) => (node.kind === 'ScalarTypeDefinition' ? [node.name.value] : [])))
  const ownScalars = Object.fromEntries(Object.entries(scalars).filter(([scalar]) => declared.has(scalar)))
  const enums = Object.fromEntries(
    typeDefs.definitions.flatMap((node) => (node.kind === 'EnumTypeDefinition' ? [[node.name.value, innerValues(node)]] : [])),
  )
  const schema = buildSubgraphSchema({ typeDefs, resolvers: { ...ownScalars, ...enums, ...resolvers } })
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
