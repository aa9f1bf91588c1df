import { buildSubgraphSchema } from '@apollo/subgraph'
import { type GraphQLSchema, isInputObjectType, isObjectType, parse, valueFromAST } from 'graphql'
import { innerValues } from '../../../schema/inner-values.ts'
import { readSdl } from '../../../schema/sdl.ts'
import type { ByteRequest, ByteResponse } from '../bytes/byte-response.ts'
import { totalCount } from './connection.ts'
import type { LinkContext } from './link.ts'
import { scalars } from './scalars.ts'

export type SubgraphName = 'billing' | 'inference' | 'knowledge'

/** The third argument of every resolver. */
export interface ResolverContext<Deps> extends LinkContext {
  readonly deps: Deps
}

/**
 * A running subgraph, for a local link or to be served to remote ones. Disposing it stops its work and closes its
 * stores.
 */
export interface Subgraph extends AsyncDisposable {
  readonly name: SubgraphName
  readonly schema: GraphQLSchema
  /** The only place that makes a resolver's context. */
  toResolverContext(context: LinkContext): ResolverContext<unknown>
  /** Absent: it stores no bytes for clients. Checks the path. */
  openBytes?(request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>): Promise<ByteResponse>
  /** Says which parts cannot serve now, as `<part>: <sentence>`; empty when ready. Answers within 2 s. */
  problems(): Promise<readonly string[]>
}

/** A subgraph with stores of its own. */
export interface StoringSubgraph extends Subgraph {
  /** Resolves when its stores are open, which may be long after it serves. Rejects when waiting cannot help. */
  readonly opened: Promise<unknown>
}

/** By their resolvers: a subgraph that opens many times in one process builds its schema once. */
const built = new WeakMap<object, GraphQLSchema>()

/**
 * Gives the executable schema of `schema/<name>.graphql`. `resolvers` has the type generated for the subgraph. Scalars,
 * enums and the counts of lists are added here.
 */
export function subgraphSchema(name: SubgraphName, resolvers: object): GraphQLSchema {
  const schema = built.get(resolvers) ?? build(name, resolvers)
  built.set(resolvers, schema)
  return schema
}

function build(name: SubgraphName, resolvers: object): GraphQLSchema {
  // Without places, which the schema would keep: a place of each word of the text.
  const typeDefs = parse(readSdl(name), { noLocation: true })
  const declared = new Set(typeDefs.definitions.flatMap((node) => (node.kind === 'ScalarTypeDefinition' ? [node.name.value] : [])))
  const ownScalars = Object.fromEntries(Object.entries(scalars).filter(([scalar]) => declared.has(scalar)))
  const enums = Object.fromEntries(
    typeDefs.definitions.flatMap((node) => (node.kind === 'EnumTypeDefinition' ? [[node.name.value, innerValues(node)]] : [])),
  )
  const connections = Object.fromEntries(
    typeDefs.definitions.flatMap((node) =>
      node.kind === 'ObjectTypeDefinition' && node.fields?.some((field) => field.name.value === 'totalCount')
        ? [[node.name.value, { totalCount }]]
        : [],
    ),
  )
  const schema = buildSubgraphSchema({ typeDefs, resolvers: { ...ownScalars, ...enums, ...connections, ...resolvers } as never })
  coerceDefaults(schema)
  return schema
}

/**
 * The schema was built before its scalars and enums knew their inner values, so the SDL's defaults are coerced again.
 */
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
