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
 * A running subgraph, for a local link or for a server of remote ones. Disposal stops its work and closes its stores.
 */
export interface Subgraph extends AsyncDisposable {
  readonly name: SubgraphName
  readonly schema: GraphQLSchema
  /** Creates a resolver's context. No other code does. */
  toResolverContext(context: LinkContext): ResolverContext<unknown>
  /** Opens the bytes of a path, after checking the path. Absent: the subgraph stores no bytes for clients. */
  openBytes?(request: ByteRequest, context: Pick<LinkContext, 'requestId' | 'signal'>): Promise<ByteResponse>
  /** Returns which parts cannot serve now, as `<part>: <sentence>`; empty when ready. Resolves within 2 s. */
  problems(): Promise<readonly string[]>
}

/** A subgraph with stores of its own. */
export interface StoringSubgraph extends Subgraph {
  /**
   * Resolves when the subgraph's stores are open, which may be long after it serves. Rejects when waiting cannot help.
   */
  readonly opened: Promise<unknown>
}

/** Schemas by their resolvers: a subgraph that opens many times in one process builds its schema once. */
const built = new WeakMap<object, GraphQLSchema>()

/**
 * Returns the executable schema of `schema/<name>.graphql`. `resolvers` has the type generated for the subgraph. This
 * function adds scalars, enums and the counts of lists.
 */
export function subgraphSchema(name: SubgraphName, resolvers: object): GraphQLSchema {
  const schema = built.get(resolvers) ?? build(name, resolvers)
  built.set(resolvers, schema)
  return schema
}

function build(name: SubgraphName, resolvers: object): GraphQLSchema {
  // Without locations: the schema would otherwise store the location of each word of the text.
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

/** Coerces the SDL's defaults again: the schema was built before its scalars and enums knew their inner values. */
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
